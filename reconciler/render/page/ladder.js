// Who gets what: a client or an address is typed, and every level is shown for each key.

const SHARED = { user: "all client ids of the user together", client_id: "all users of the client id together", user_and_client_id: "this user and client id alone" };
const SAID = { wins: "applies", hidden: "hidden", unset: "", "not-applicable": "cannot apply" };
const made = new Map();

function limitsOf(cluster, state) {
  const place = DATA.clusters.indexOf(cluster) + ":" + state;
  if (!made.has(place)) made.set(place, new Limits(cluster, state));
  return made.get(place);
}

function shownName(name) {
  if (name === OTHER) return "(any other)";
  return name === "" ? "(none)" : displayName(name);
}

function labels(user, clientId) {
  const shown = [shownName(user), shownName(clientId)];
  return PRECEDENCE.map((level) => {
    const texts = CLIENT_TYPES.map((type, at) => ({ name: type + "=" + shown[at], default: type + "=<default>", absent: "" })[level[type]]);
    return texts.filter(Boolean).join(" ");
  });
}

function bucketCell(user, clientId, level) {
  const tags = bucketOf(user, clientId, level).map(([type, name]) => type + "=" + shownName(name)).join(" ");
  return [nameElement(tags), ": " + SHARED[groupedBy(level)]];
}

function limitRow(found, bucket) {
  const heads = ["Key", "Limit", "Set by", "Level", "Counted together"];
  const { key, winner, unknown } = found;
  const name = nameElement(key);
  const cells = unknown
    ? [name, element("span", { class: "chip warn" }, "not known"), escaped(unknown), "", ""]
    : winner
      ? [name, element("strong", {}, amount(key, winner.value)), nameElement(entityText(winner.entity)), String(winner.level), bucket(winner.level)]
      : [name, element("span", { class: "faint" }, "unlimited"), "", "", ""];
  const made = row(cells, heads, { first: "rowheader" });
  made.dataset.key = key;
  made.dataset.level = winner && !unknown ? winner.level : "";
  return made;
}

function rungCell(key, rung) {
  const value = rung.value === null ? "–" : amount(key, rung.value);
  const said = SAID[rung.status];
  const cell = element("td", { role: "cell", "data-label": key, class: rung.status, "data-status": rung.status });
  if (rung.status === "not-applicable" && rung.value === null) {
    cell.append(element("span", { class: "said" }, said));
    return cell;
  }
  cell.append(element("span", { class: "value" }, value));
  if (said) cell.append(" ", element("span", { class: "said" }, said));
  return cell;
}

function ladderTable(found, names) {
  const known = found.filter((one) => one.rungs.length);
  if (!known.length) return null;
  const keys = known.map((one) => one.key);
  const rows = names.map((name, at) => {
    const label = element("th", { role: "rowheader", scope: "row" }, element("span", { class: "rank" }, String(at + 1)), " ", nameElement(name));
    return element("tr", { role: "row", "data-level": String(at + 1) }, label, ...known.map((one) => rungCell(one.key, one.rungs[at])));
  });
  const table = tableElement(["All levels, the strongest first"], ["Level", ...keys], rows);
  table.classList.add("ladder");
  return table;
}

function askedNow() {
  const cluster = DATA.clusters[Number(byId("who-cluster").value)];
  const state = byId("who-state").value;
  if (byId("who-is-address").checked) {
    const text = typedName(byId("who-ip").value);
    return { cluster, state, ip: text === "" ? OTHER : text };
  }
  const user = typedName(byId("who-user").value);
  const any = byId("who-any-client").checked;
  return { cluster, state, user: user === "" ? OTHER : user, clientId: any ? OTHER : typedName(byId("who-client").value) };
}

function clientAnswer({ user, clientId }, limits) {
  const found = CLIENT_KEYS.map((key) => limits.client(key, user, clientId));
  const notes = [];
  if (clientId === "" && !limits.cluster.callback) {
    const differ = CLIENT_KEYS.filter((key) => limits.winner(key, user, OTHER) !== limits.winner(key, user, ""));
    if (differ.length) notes.push("This is a client that sends no client-id. A client that sends one which no quota names gets another " + differ.join(", ") + ".");
  }
  for (const name of [user, clientId]) {
    if (name === "<default>") notes.push("This is the literal name <default>. Leave the field empty, or tick “any other”, for whom only defaults catch.");
  }
  const who = `user=${shownName(user)} client-id=${shownName(clientId)}`;
  return { who, found, names: labels(user, clientId), notes, bucket: (level) => bucketCell(user, clientId, level) };
}

function addressAnswer({ ip }, limits) {
  const verdict = ip === OTHER ? "literal" : ipVerdict(ip);
  const packed = ip === OTHER ? null : addressBytes(ip);
  const notes = [];
  if (verdict === "invalid") return { who: "ip=" + shownName(ip), found: [], names: [], notes: ["This is neither an address nor a host name."] };
  if (ip === "<default>") notes.push("This is the literal name <default>. Leave the field empty for an address that no quota names.");
  if (verdict === "ask-broker") notes.push("This is a host name. Brokers limit the address that each of them found for it when the quota was set.");
  if (verdict === "literal" && limits.hostNames.length) {
    notes.push("Limits of host names are not counted, since only the brokers know their addresses: " + plural(limits.hostNames.length, "entity", "entities") + ".");
  }
  const bucket = () => [nameElement("ip=" + (packed ? addressText(packed) : shownName(ip))), ": all connections from the address"];
  const [explicit] = limits.explicit(ip);
  const names = [explicit ? entityText(explicit.entity) : "ip=" + shownName(ip), "ip=<default>"];
  return { who: "ip=" + shownName(ip), found: [limits.address(ip)], names, notes, bucket };
}

function answer() {
  const asked = askedNow();
  const limits = limitsOf(asked.cluster, asked.state);
  const result = "ip" in asked ? addressAnswer(asked, limits) : clientAnswer(asked, limits);
  const where = { live: "live in ", declared: "declared for ", planned: "after the next apply to " }[asked.state];
  const parts = result.notes.map((note) => element("p", { class: "note" }, note));
  if (result.found.length) {
    const heads = ["Key", "Limit", "Set by", "Level", "Counted together"];
    const rows = result.found.map((one) => limitRow(one, result.bucket));
    const caption = ["Limits of ", nameElement(result.who), ", per broker, " + where + asked.cluster.name];
    parts.push(tableElement(caption, heads, rows));
    const ladder = ladderTable(result.found, result.names);
    if (ladder) parts.push(ladder);
  }
  byId("who-answer").replaceChildren(...parts);
  const limited = result.found.filter((one) => one.winner && !one.unknown);
  const none = result.found.some((one) => one.unknown) ? "not known" : "unlimited";
  const words = limited.map((one) => one.key + " " + amount(one.key, one.winner.value));
  byId("who-status").textContent = result.found.length ? result.who + ": " + (words.join(", ") || none) : result.notes[0];
}
