// The form of "who gets what": suggestions, the address bar, and going there from an entity.

const MOST_SUGGESTED = 20;
const QUIET_MS = 300;
const namesKnown = new Map();
let remembering = 0;

function knownNames(cluster, type) {
  const place = DATA.clusters.indexOf(cluster) + ":" + type;
  if (!namesKnown.has(place)) {
    const found = new Set();
    for (const one of cluster.rows) {
      for (const [known, name] of entityOf(cluster, one)) {
        if (known === type && name !== DEFAULT) found.add(displayName(name));
      }
    }
    namesKnown.set(place, [...found]);
  }
  return namesKnown.get(place);
}

function suggest(field, list, type) {
  const text = field.value.toLowerCase();
  const cluster = DATA.clusters[Number(byId("who-cluster").value)];
  const found = [];
  if (text) {
    for (const name of knownNames(cluster, type)) {
      if (name.toLowerCase().includes(text)) found.push(option(name, ""));
      if (found.length === MOST_SUGGESTED) break;
    }
  }
  list.replaceChildren(...found);
}

function showFields() {
  const address = byId("who-is-address").checked;
  byId("who-address-fields").hidden = !address;
  byId("who-client-fields").hidden = address;
  byId("who-client").disabled = byId("who-any-client").checked;
}

// Only states that are there can be asked.
function showStates() {
  const cluster = DATA.clusters[Number(byId("who-cluster").value)];
  const select = byId("who-state");
  const live = cluster.at !== null;
  const kept = select.value;
  select.replaceChildren(
    ...(live ? [option("live", "live, read " + cluster.at.slice(0, 16).replace("T", " ") + " UTC")] : []),
    ...(live ? [option("planned", "after the next apply" + (cluster.prunes ? ", pruned" : ""))] : []),
    option("declared", live ? "declared in the manifests alone" : "declared (the cluster was not read)"),
  );
  if ([...select.options].some((one) => one.value === kept)) select.value = kept;
}

// So that an answer can be linked to. Names are in the shown form, which is text in any case.
function remember() {
  const fields = new URLSearchParams({ cluster: DATA.clusters[Number(byId("who-cluster").value)].name, state: byId("who-state").value });
  if (byId("who-is-address").checked) fields.set("ip", byId("who-ip").value);
  else {
    fields.set("user", byId("who-user").value);
    if (byId("who-any-client").checked) fields.set("any-client", "1");
    else fields.set("client", byId("who-client").value);
  }
  history.replaceState(null, "", "#who?" + fields);
}

function recall() {
  if (!location.hash.startsWith("#who?")) return false;
  const fields = new URLSearchParams(location.hash.slice(5));
  const place = DATA.clusters.findIndex((cluster) => cluster.name === fields.get("cluster"));
  if (place >= 0) byId("who-cluster").value = String(place);
  showStates();
  const states = [...byId("who-state").options].map((one) => one.value);
  if (states.includes(fields.get("state"))) byId("who-state").value = fields.get("state");
  byId(fields.has("ip") ? "who-is-address" : "who-is-client").checked = true;
  byId("who-ip").value = fields.get("ip") || "";
  byId("who-user").value = fields.get("user") || "";
  byId("who-client").value = fields.get("client") || "";
  byId("who-any-client").checked = fields.has("any-client");
  return true;
}

function askNow() {
  showFields();
  answer();
  // Browsers complain of an address bar that changes with every key.
  clearTimeout(remembering);
  remembering = setTimeout(remember, QUIET_MS);
}

// From an entity of the table: its own names; a default asks for whoever has no name of their own.
function askAbout(cluster, entity) {
  const names = new Map(entity);
  const shown = (type) => (names.has(type) && names.get(type) !== DEFAULT ? displayName(names.get(type)) : "");
  byId("who-cluster").value = String(DATA.clusters.indexOf(cluster));
  showStates();
  byId(names.has("ip") ? "who-is-address" : "who-is-client").checked = true;
  byId("who-ip").value = shown("ip");
  byId("who-user").value = shown("user");
  byId("who-client").value = shown("client-id");
  byId("who-any-client").checked = names.get("client-id") === DEFAULT;
  askNow();
  byId("who-title").focus();
  byId("who-title").scrollIntoView();
}

function startAsking() {
  byId("who-cluster").replaceChildren(...DATA.clusters.map((cluster, at) => option(String(at), cluster.name)));
  showStates();
  const asked = recall();
  showFields();
  byId("who-cluster").addEventListener("change", showStates);
  const form = byId("who-form");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", askNow);
  byId("who-user").addEventListener("input", () => suggest(byId("who-user"), byId("who-users"), "user"));
  byId("who-client").addEventListener("input", () => suggest(byId("who-client"), byId("who-clients"), "client-id"));
  window.addEventListener("hashchange", () => {
    if (recall()) {
      showFields();
      answer();
    }
  });
  if (asked) {
    answer();
    byId("who").scrollIntoView();
  }
}
