// Which quota applies, by the embedded table of precedence levels. Each key is resolved by itself.

const OTHER = Symbol("any name that no quota names");
const CLIENT_KEYS = ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"];
const ADDRESS_KEY = "connection_creation_rate";
// The strongest first; a level's number is its place, from 1. Each says of a type: "name", "default" or "absent".
const PRECEDENCE = DATA.precedence.clients;
const ADDRESS_PRECEDENCE = DATA.precedence.addresses;
const CLIENT_TYPES = ["user", "client-id"];

function groupedBy(level) {
  return PRECEDENCE[level - 1].grouped_by;
}

// What the entity of a level has of each type, for a client: its name, the default, or null.
function shapeOf(level, names) {
  return CLIENT_TYPES.map((type, at) => ({ name: names[at], default: DEFAULT, absent: null })[level[type]]);
}

// Where a level keeps the entity of these names: by those that it matches; OTHER is kept nowhere.
function slotOf(level, names) {
  const used = names.filter((name, at) => level[CLIENT_TYPES[at]] === "name");
  return used.includes(OTHER) ? OTHER : JSON.stringify(used);
}

// The level of an entity of users and client ids (from 0), and its place there; null for other entities.
function levelOf(entity) {
  const names = CLIENT_TYPES.map((type) => (entity.find(([of]) => of === type) || [type, null])[1]);
  if (entity.length !== names.filter((name) => name !== null).length) return null;
  const matches = names.map((name) => (name === null ? "absent" : name === DEFAULT ? "default" : "name"));
  const at = PRECEDENCE.findIndex((level) => CLIENT_TYPES.every((type, which) => level[type] === matches[which]));
  return at < 0 ? null : [at, slotOf(PRECEDENCE[at], names)];
}

const STATES = {
  live: (cluster, row) => quotasOf(row, LIVE),
  declared: (cluster, row) => quotasOf(row, DECLARED),
  planned: plannedOf,
};

// All limits of one state of a cluster, ready to be asked.
class Limits {
  constructor(cluster, state) {
    this.cluster = cluster;
    this.levels = new Map(CLIENT_KEYS.map((key) => [key, PRECEDENCE.map(() => new Map())]));
    this.byName = new Map();
    this.byAddress = new Map();
    this.hostNames = [];
    for (const row of cluster.rows) {
      const quotas = STATES[state](cluster, row);
      if (quotas !== null) this.add(entityOf(cluster, row), quotas);
    }
  }

  add(entity, quotas) {
    const place = levelOf(entity);
    for (let at = 0; at < quotas.length; at += 2) {
      const key = this.cluster.keys[quotas[at]];
      const value = quotas[at + 1];
      if (place !== null && this.levels.has(key)) {
        this.levels.get(key)[place[0]].set(place[1], { entity, value, level: place[0] + 1 });
      } else if (key === ADDRESS_KEY && entity.length === 1 && entity[0][0] === "ip") {
        this.addAddress(entity, value);
      }
    }
  }

  addAddress(entity, value) {
    const name = entity[0][1];
    const candidate = { entity, value, level: 1 + ADDRESS_PRECEDENCE.indexOf(name === DEFAULT ? "default" : "name") };
    this.byName.set(name, candidate);
    if (name === DEFAULT) return;
    const packed = addressBytes(name);
    if (packed === null) {
      this.hostNames.push(entity);
      return;
    }
    const place = packed.join();
    this.byAddress.set(place, [...(this.byAddress.get(place) || []), candidate]);
  }

  candidates(key, user, clientId) {
    return this.levels.get(key).map((held, at) => held.get(slotOf(PRECEDENCE[at], [user, clientId])) || null);
  }

  // An empty client id leaves only the user's tag, and so finds only quotas of users.
  winner(key, user, clientId) {
    return this.candidates(key, user, clientId).find((one, at) => one !== null && meets(clientId, at + 1)) || null;
  }

  // One key of a client: the winner, and what every level does.
  client(key, user, clientId) {
    const winner = this.winner(key, user, clientId);
    const { callback, statics } = this.cluster;
    const unlimited = winner === null && clientId !== "" && statics[key] ? statics[key] : null;
    const held = this.candidates(key, user, clientId);
    const rungs = PRECEDENCE.map((level, at) => {
      const shape = shapeOf(level, [user, clientId]);
      const reachable = !shape.includes(OTHER) && !shape.includes("") && meets(clientId, at + 1);
      return { level: at + 1, value: held[at] ? held[at].value : null, status: statusOf(held[at], winner, reachable) };
    });
    return { key, winner, unknown: callback || unlimited, rungs: callback ? [] : rungs };
  }

  // Spellings of one address that disagree are unclear: in each broker the one applied last decides.
  address(name) {
    const found = this.explicit(name);
    const fallback = this.byName.get(DEFAULT) || null;
    const unclear = found.some((one) => one.value !== found[0].value);
    const held = ADDRESS_PRECEDENCE.map((match) => (match === "default" ? fallback : found[0] || null));
    const winner = unclear ? null : held.find((one) => one !== null) || null;
    const spellings = found.map((one) => entityText(one.entity)).sort().join(", ");
    const unknown = unclear
      ? spellings + " are one address with different limits. In each broker the one applied last decides"
      : null;
    const rungs = held.map((one, at) => {
      const reachable = ADDRESS_PRECEDENCE[at] === "default" || name !== OTHER;
      return { level: at + 1, value: one ? one.value : null, status: statusOf(one, winner, reachable) };
    });
    return { key: ADDRESS_KEY, winner, unknown, rungs };
  }

  // The entity in just this spelling comes first.
  explicit(name) {
    if (name === OTHER) return [];
    const asked = this.byName.get(name);
    const packed = addressBytes(name);
    const same = (packed && this.byAddress.get(packed.join())) || [];
    return [...(asked ? [asked] : []), ...same.filter((one) => one !== asked)];
  }
}

function meets(clientId, level) {
  return clientId !== "" || groupedBy(level) === "user";
}

function statusOf(held, winner, reachable) {
  if (!reachable) return "not-applicable";
  if (held === null) return "unset";
  return held === winner ? "wins" : "hidden";
}

// What a broker counts together against the limit of this level; null stands for whatever name the client has.
function bucketOf(user, clientId, level) {
  const tags = [];
  if (groupedBy(level) !== "client_id") tags.push(["user", user]);
  if (groupedBy(level) !== "user" && clientId !== "") tags.push(["client-id", clientId]);
  return tags;
}
