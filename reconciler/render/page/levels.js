// Kafka's eight levels for users and client ids, and the two for addresses. Each key is resolved alone.

const OTHER = Symbol("any name that no quota names");
const CLIENT_KEYS = ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"];
const ADDRESS_KEY = "connection_creation_rate";
const USER_LEVELS = [3, 6];
const CLIENT_LEVELS = [7, 8];
const NOBODY = "";

function pairPlace(user, clientId) {
  return typeof user === "string" && typeof clientId === "string" ? user.length + ":" + user + clientId : OTHER;
}

// The level of an entity of users and client ids, and its place in that level's table; null for other entities.
function levelOf(entity) {
  const [[first, name], second] = entity;
  if (entity.length === 1 && first === "user") return name === DEFAULT ? [6, NOBODY] : [3, name];
  if (entity.length === 1 && first === "client-id") return name === DEFAULT ? [8, NOBODY] : [7, name];
  if (entity.length !== 2 || first !== "user" || second[0] !== "client-id") return null;
  const clientId = second[1];
  if (name === DEFAULT) return clientId === DEFAULT ? [5, NOBODY] : [4, clientId];
  return clientId === DEFAULT ? [2, name] : [1, pairPlace(name, clientId)];
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
    this.levels = new Map(CLIENT_KEYS.map((key) => [key, Array.from({ length: 8 }, () => new Map())]));
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
        this.levels.get(key)[place[0] - 1].set(place[1], { entity, value, level: place[0] });
      } else if (key === ADDRESS_KEY && entity.length === 1 && entity[0][0] === "ip") {
        this.addAddress(entity, value);
      }
    }
  }

  addAddress(entity, value) {
    const name = entity[0][1];
    const candidate = { entity, value, level: name === DEFAULT ? 2 : 1 };
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
    const places = [pairPlace(user, clientId), user, user, clientId, NOBODY, NOBODY, clientId, NOBODY];
    return this.levels.get(key).map((level, at) => level.get(places[at]) || null);
  }

  // An empty client id leaves only the user's tag, and so finds only quotas of users.
  winner(key, user, clientId) {
    const held = this.candidates(key, user, clientId);
    return (clientId === "" ? [held[2], held[5]] : held).find((one) => one !== null) || null;
  }

  // One key of a client: the winner, and what every level does.
  client(key, user, clientId) {
    const winner = this.winner(key, user, clientId);
    const { callback, statics } = this.cluster;
    const unlimited = winner === null && clientId !== "" && statics[key] ? statics[key] : null;
    const shapes = [
      [user, clientId], [user, DEFAULT], [user, null], [DEFAULT, clientId],
      [DEFAULT, DEFAULT], [DEFAULT, null], [null, clientId], [null, DEFAULT],
    ];
    const held = this.candidates(key, user, clientId);
    const rungs = shapes.map((shape, at) => {
      const reachable = !shape.includes(OTHER) && !shape.includes("") && (clientId !== "" || USER_LEVELS.includes(at + 1));
      return { level: at + 1, value: held[at] ? held[at].value : null, status: statusOf(held[at], winner, reachable) };
    });
    return { key, winner, unknown: callback || unlimited, rungs: callback ? [] : rungs };
  }

  // Spellings of one address that disagree are unclear: in each broker the one applied last holds.
  address(name) {
    const found = this.explicit(name);
    const fallback = this.byName.get(DEFAULT) || null;
    const unclear = found.some((one) => one.value !== found[0].value);
    const winner = unclear ? null : found[0] || fallback;
    const spellings = found.map((one) => entityText(one.entity)).join(", ");
    const unknown = unclear
      ? spellings + " are one address with different limits; in each broker the one applied last holds"
      : null;
    const rungs = [
      { level: 1, value: found[0] ? found[0].value : null, status: statusOf(found[0] || null, winner, name !== OTHER) },
      { level: 2, value: fallback ? fallback.value : null, status: statusOf(fallback, winner, true) },
    ];
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

function statusOf(held, winner, reachable) {
  if (!reachable) return "not-applicable";
  if (held === null) return "unset";
  return held === winner ? "wins" : "hidden";
}

// What a broker counts together against the limit of this level; null stands for whatever name the client has.
function bucketOf(user, clientId, level) {
  const tags = [];
  if (!CLIENT_LEVELS.includes(level)) tags.push(["user", user]);
  if (!USER_LEVELS.includes(level) && clientId !== "") tags.push(["client-id", clientId]);
  return tags;
}
