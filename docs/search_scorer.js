/* How the search orders its hits. With Sphinx's own weights, every title that has one of the words counts the same. */
var Scorer = {
  score: ([docname, title, , , score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const stemmer = new Stemmer();
    const stems = (text) => new Set(splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word)));
    const inTitle = stems(title);
    const named = [...stems(query)].filter((stem) => inTitle.has(stem) && !stopwords.has(stem)).length;
    const isExample = docname.startsWith("reference/") && docname.split("/").length === 2;
    return score + 5 * named - (isExample ? 4 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
