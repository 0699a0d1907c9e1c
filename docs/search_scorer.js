/* How the search orders its hits: by the words of the query that the title or the words of the page have, whole words before parts of words,
   then guides before the reference, findings and decisions. With Sphinx's own weights, every title that has one word counts the same.
   PAGE_WORDS stands above this text in the built site: docs/search_words.toml. */
var Scorer = {
  score: ([docname, title, , , score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const stemmer = new Stemmer();
    const stems = (text) =>
      new Set(splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word)).map((word) => stemmer.stemWord(word)));
    const wanted = [...stems(query)];
    const inTitle = stems(title);
    const inWords = stems(PAGE_WORDS[docname] || "");
    const points = wanted.reduce((sum, stem) => sum + (inTitle.has(stem) ? 12 : inWords.has(stem) ? 11 : 0), 0);
    const whole = title.toLowerCase() === query.trim().toLowerCase() ? 20 : 0;
    const [folder, kind, page] = docname.split("/");
    const order = { decisions: -7, reference: { ids: -5, commands: -3, documents: -4 }[page && kind] ?? -3 };
    return (score > 7 ? 3 : score > 2 ? 2 : 0) + points + whole + (kind ? order[folder] : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 2,
  term: 5,
  partialTerm: 1,
};
