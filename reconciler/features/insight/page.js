// The search over all entities, and "who gets what": which quota applies to a client, by the embedded rows and levels.
// Names and amounts come as the command line prints them, and are only ever set as text.

const DATA = JSON.parse(document.getElementById("data").textContent);
const PAGE = 50;
const QUIET_MS = 300;
let remembering = 0;
const byId = (id) => document.getElementById(id);
const plural = (count, word, words) => `${count.toLocaleString("en-US")} ${count === 1 ? word : words}`;

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Short names stay in one piece, and paths break after a slash.
const pieces = (text) => text.split(/(?<=\/)/).flatMap((part) => (part.length > 24 ? [part] : [element("span", { class: "w" }, part), element("wbr", {})]));
const nameElement = (text) => element("code", {}, element("bdi", {}, ...pieces(text)));
const option = (value, text) => element("option", { value }, text);

// Roles are written out, because a narrow screen lays tables out as blocks, which takes their meaning away.
function row(cells, heads) {
  return element("tr", { role: "row" }, ...cells.map((cell, at) => {
    const made = element("td", { role: "cell", "data-label": heads[at] }, ...[cell].flat());
    if (!made.textContent) made.classList.add("empty");
    return made;
  }));
}

function tableElement(caption, heads, rows) {
  const head = element("tr", { role: "row" }, ...heads.map((text) => element("th", { scope: "col", role: "columnheader" }, text)));
  return element("table", { role: "table" }, element("caption", {}, caption),
    element("thead", { role: "rowgroup" }, head), element("tbody", { role: "rowgroup" }, ...rows));
}

const liveOf = (entity) => (entity.live === true ? entity.declared : entity.live) || null;
const QUOTAS = {
  live: (cluster, entity) => liveOf(entity),
  declared: (cluster, entity) => entity.declared || null,
  planned: (cluster, entity) => (entity.stays ? liveOf(entity) : entity.declared || (cluster.prunes ? null : liveOf(entity))),
};

// Who gets what.

const asked = () => ({
  cluster: DATA.clusters[Number(byId("who-cluster").value)],
  state: byId("who-state").value,
  user: byId("who-user").value,
  client: byId("who-client").value,
  none: byId("who-none").checked,
  ip: byId("who-ip").value,
});

// The entity of a part of a level, the strongest first; null where only a name that was not typed could have one.
function part(type, match, name) {
  if (match === "absent") return "";
  if (match === "default") return `${type}=<default>`;
  return name ? `${type}=${name}` : null;
}

function ladderOf({ user, client, none, ip }) {
  if (ip) return DATA.addresses.map((match) => ({ entity: part("ip", match, ip), shared: "all connections from the address" }));
  return DATA.levels.map((level) => {
    const parts = [part("user", level.user, user), part("client-id", level.client, client)];
    const reachable = !parts.includes(null) && !(none && level.client !== "absent");
    return { entity: reachable ? parts.filter(Boolean).join(" ") : null, shared: level.shared };
  });
}

function limitCells(key, rung, value, cluster, none) {
  const reason = cluster.callback || (value === undefined && !none ? cluster.statics[key] : null);
  if (reason) return [nameElement(key), element("span", { class: "chip warn" }, "not known"), reason, "", ""];
  if (value === undefined) return [nameElement(key), "unlimited", "", "", ""];
  return [nameElement(key), element("strong", {}, value), nameElement(rung.entity), String(rung.level), rung.shared];
}

function answer() {
  const question = asked();
  const { cluster, state, ip, none } = question;
  const quotas = new Map(cluster.entities.map((entity) => [entity.name, QUOTAS[state](cluster, entity)]));
  const ladder = ladderOf(question).map((rung, at) => ({ ...rung, level: at + 1, quotas: (rung.entity && quotas.get(rung.entity)) || {} }));
  const keys = ip ? DATA.address_keys : DATA.client_keys;
  const winners = new Map(keys.map((key) => [key, ladder.find((rung) => key in rung.quotas)]));
  const heads = ["Key", "Limit", "Set by", "Level", "Counted together"];
  const limits = keys.map((key) => {
    const made = row(limitCells(key, winners.get(key), winners.get(key)?.quotas[key], cluster, none), heads);
    made.dataset.key = key;
    return made;
  });
  const shown = keys.filter((key) => winners.get(key));
  const rungs = ladder.filter((rung) => rung.entity).map((rung) => row([
    [`${rung.level} `, nameElement(rung.entity)],
    ...shown.map((key) => {
      const value = rung.quotas[key];
      if (value === undefined) return "";
      return winners.get(key) === rung ? [element("strong", {}, value), " applies"] : element("s", {}, value);
    }),
  ], ["Level", ...shown]));
  const levels = shown.length && !cluster.callback ? [tableElement("Its levels, the strongest first", ["Level", ...shown], rungs)] : [];
  byId("who-answer").replaceChildren(tableElement("Limits on each broker", heads, limits), ...levels);
  // Browsers complain of an address bar that changes with every key.
  clearTimeout(remembering);
  const fields = new URLSearchParams({ ...question, cluster: cluster.name, none: none ? "1" : "" });
  remembering = setTimeout(() => history.replaceState(null, "", `#who?${fields}`), QUIET_MS);
}

// Only states that are there can be asked.
function showStates() {
  const cluster = asked().cluster;
  const states = cluster.at ? [["live", `live, read ${cluster.at}`], ["planned", "after the next apply"]] : [];
  byId("who-state").replaceChildren(...[...states, ["declared", "declared in the manifests"]].map(([value, text]) => option(value, text)));
}

function recall() {
  const fields = new URLSearchParams(location.hash.startsWith("#who?") ? location.hash.slice(5) : "");
  const place = DATA.clusters.findIndex((cluster) => cluster.name === fields.get("cluster"));
  if (place < 0) return;
  byId("who-cluster").value = String(place);
  showStates();
  for (const name of ["state", "user", "client", "ip"]) byId(`who-${name}`).value = fields.get(name) || "";
  byId("who-none").checked = fields.get("none") === "1";
  answer();
  byId("who-gets-what").scrollIntoView();
}

// All entities, a page at a time, so that a hundred thousand are quick.

const HEADS = ["Cluster", "Entity", "State", "Limits", "Owner", "Declared at", "Note"];
const every = DATA.clusters.flatMap((cluster) => cluster.entities.map((entity) => {
  const texts = [entity.name, entity.owner, entity.place, entity.note, entity.state, ...(entity.tags || [])];
  return { cluster, entity, text: texts.filter(Boolean).join("\n").toLowerCase() };
}));
let found = every;
let first = 0;

function limitLines(entity) {
  const [declared, live] = [entity.declared || {}, liveOf(entity) || {}];
  const keys = [...new Set([...Object.keys(declared), ...Object.keys(live)])].sort();
  const differs = entity.declared && entity.live && entity.live !== true;
  return keys.map((key) => {
    const line = element("li", {}, nameElement(key), " ");
    if (!differs || declared[key] === live[key]) line.append(declared[key] || live[key]);
    else line.append(`declared ${declared[key] || "not set"}, live ${live[key] || "not set"}`);
    return line;
  });
}

function entityRow({ cluster, entity }) {
  const state = [element("span", { class: `chip ${DATA.styles[entity.state]}` }, entity.state)];
  for (const tag of entity.tags || []) state.push(" ", element("span", { class: "tag" }, tag));
  const lines = element("ul", { class: "limits" }, ...limitLines(entity));
  const place = entity.place ? nameElement(entity.place) : "";
  return row([cluster.name, nameElement(entity.name), state, lines, entity.owner || "", place, element("bdi", {}, entity.note || "")], HEADS);
}

function showPage() {
  const page = found.slice(first, first + PAGE);
  byId("entities-body").replaceChildren(...page.map(entityRow));
  const range = found.length > PAGE ? `${(first + 1).toLocaleString("en-US")} to ${(first + page.length).toLocaleString("en-US")} of ` : "";
  byId("entities-status").textContent = range + plural(found.length, "entity", "entities");
  byId("entities-before").disabled = first === 0;
  byId("entities-after").disabled = first + PAGE >= found.length;
  byId("entities-pages").hidden = found.length <= PAGE;
}

function search() {
  const words = byId("entities-search").value.toLowerCase().split(" ").filter(Boolean);
  const state = byId("entities-state").value;
  const cluster = DATA.clusters[Number(byId("entities-cluster").value || -1)];
  found = every.filter((one) => (!cluster || one.cluster === cluster) && (!state || one.entity.state === state) && words.every((word) => one.text.includes(word)));
  first = 0;
  showPage();
}

function turn(pages) {
  first += pages * PAGE;
  showPage();
}

// What needs the script is shown only where it runs.
for (const section of document.querySelectorAll("[data-needs-script]")) section.hidden = false;
for (const form of document.querySelectorAll("main form")) form.addEventListener("submit", (event) => event.preventDefault());
const clusters = () => DATA.clusters.map((cluster, at) => option(String(at), cluster.name));
byId("who-cluster").append(...clusters());
byId("who-cluster").addEventListener("change", showStates);
byId("who-form").addEventListener("input", answer);
byId("entities-cluster").append(...clusters());
byId("entities-state").append(...Object.keys(DATA.styles).map((state) => option(state, state)));
byId("entities-form").addEventListener("input", search);
byId("entities-before").addEventListener("click", () => turn(-1));
byId("entities-after").addEventListener("click", () => turn(1));
window.addEventListener("hashchange", recall);
showStates();
showPage();
recall();
