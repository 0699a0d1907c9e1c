// All entities of all clusters: searched and filtered, a page at a time, so that a hundred thousand are quick.

const PAGE = 50;
const HEADS = ["Cluster", "Entity", "State", "Limits", "Owner", "Declared at", "Note"];
const WORDS = {
  "in-sync": ["in sync", "good"],
  unapplied: ["not applied", "warn"],
  changed: ["changed by hand", "bad"],
  missing: ["removed by hand", "bad"],
  differs: ["differs", "bad"],
  added: ["added", "bad"],
  unmanaged: ["unmanaged", "faint"],
};
let searched = null;
let found = [];
let first = 0;

// One text an entity, in lower case, made once.
function searchTexts() {
  if (searched === null) {
    searched = DATA.clusters.flatMap((cluster) =>
      cluster.rows.map((one) => {
        const text = [entityText(entityOf(cluster, one)), escaped(ownerOf(cluster, one)), escaped(placeOf(cluster, one))];
        return { cluster, row: one, text: (text.join("\n") + (one[NOTE] ? "\n" + one[NOTE] : "")).toLowerCase() };
      }),
    );
  }
  return searched;
}

function isWanted(kind, one) {
  const drift = classOf(one.row);
  const flags = one.row[FLAGS] || 0;
  if (kind === "") return true;
  if (kind === "differences") return drift !== null && drift !== "in-sync" && drift !== "unmanaged";
  if (kind === "declared") return quotasOf(one.row, DECLARED) !== null;
  if (kind === "protected") return (flags & PROTECTED) !== 0;
  if (kind === "outside") return (flags & OUT_OF_SCOPE) !== 0;
  return drift === kind;
}

function limitLines(cluster, one) {
  const sides = [DECLARED, LIVE, BASELINE].map((side) => quotasOf(one, side));
  const [declared, live, baseline] = sides;
  const keys = [...new Set(sides.flatMap((side) => (side || []).filter((_, at) => at % 2 === 0)))].sort((a, b) => a - b);
  const same = one[LIVE] === 1 || cluster.at === null || declared === null;
  return keys.map((number) => {
    const key = cluster.keys[number];
    const [wanted, held, before] = [declared, live, baseline].map((side) => valueOf(side, number));
    const line = element("li", {}, nameElement(escaped(key)), " ");
    if (same || wanted === held) line.append(amountElement(key, wanted === null ? held : wanted));
    else line.append("declared ", amountElement(key, wanted), ", ", element("strong", {}, "live ", amountElement(key, held)));
    if (baseline !== null && before !== held) line.append(element("span", { class: "faint" }, ", applied last ", amountElement(key, before)));
    return line;
  });
}

function stateCell(one) {
  const drift = classOf(one);
  const [word, style] = drift === null ? ["not compared", "faint"] : WORDS[drift];
  const cell = [element("span", { class: "chip " + style }, word)];
  const flags = one[FLAGS] || 0;
  if (flags & PROTECTED) cell.push(" ", element("span", { class: "tag" }, "protected"));
  if (flags & OUT_OF_SCOPE) cell.push(" ", element("span", { class: "tag" }, "outside the scope"));
  return cell;
}

function entityRow({ cluster, row: one }) {
  const entity = entityOf(cluster, one);
  const text = entityText(entity);
  const button = element("button", { type: "button", class: "small", "aria-label": "Levels of " + text }, "Levels");
  button.addEventListener("click", () => askAbout(cluster, entity));
  const known = entity.every(([type]) => ["user", "client-id", "ip"].includes(type));
  const place = placeOf(cluster, one);
  const lines = limitLines(cluster, one);
  const cells = [
    cluster.name,
    known ? [nameElement(text), " ", button] : [nameElement(text)],
    stateCell(one),
    lines.length ? element("ul", { class: "limits" }, ...lines) : element("span", { class: "faint" }, "no limit"),
    escaped(ownerOf(cluster, one)),
    place ? nameElement(escaped(place)) : "",
    one[NOTE] ? element("bdi", {}, escaped(String(one[NOTE]).replace(/\r?\n/g, " "))) : "",
  ];
  const made = row(cells, HEADS);
  for (const cell of made.children) if (!cell.textContent) cell.classList.add("empty");
  return made;
}

function showPage() {
  const page = found.slice(first, first + PAGE);
  byId("entities-body").replaceChildren(...page.map(entityRow));
  const total = searchTexts().length;
  const range = found.length > PAGE ? `${(first + 1).toLocaleString("en-US")} to ${(first + page.length).toLocaleString("en-US")} of ` : "";
  const all = found.length === total ? "" : ` of ${total.toLocaleString("en-US")}`;
  byId("entities-status").textContent = found.length ? range + plural(found.length, "entity", "entities") + all : "No entity is like that.";
  byId("entities-before").disabled = first === 0;
  byId("entities-after").disabled = first + PAGE >= found.length;
  byId("entities-pages").hidden = found.length <= PAGE;
}

function search() {
  const words = byId("entities-search").value.toLowerCase().split(" ").filter((word) => word);
  const kind = byId("entities-kind").value;
  const cluster = byId("entities-cluster").value === "" ? null : DATA.clusters[Number(byId("entities-cluster").value)];
  found = searchTexts().filter(
    (one) => (cluster === null || one.cluster === cluster) && isWanted(kind, one) && words.every((word) => one.text.includes(word)),
  );
  first = 0;
  showPage();
}

function turn(pages) {
  first = Math.max(0, Math.min(first + pages * PAGE, Math.floor((found.length - 1) / PAGE) * PAGE));
  showPage();
}

function startTable() {
  byId("entities-cluster").append(...DATA.clusters.map((cluster, at) => option(String(at), cluster.name)));
  byId("entities-form").addEventListener("submit", (event) => event.preventDefault());
  byId("entities-form").addEventListener("input", search);
  byId("entities-before").addEventListener("click", () => turn(-1));
  byId("entities-after").addEventListener("click", () => turn(1));
  search();
}
