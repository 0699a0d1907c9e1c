// The embedded rows, and the way back from them to entities and values.

const DATA = JSON.parse(document.getElementById("data").textContent);
const [ENTITY, CLASS, DECLARED, LIVE, OWNER, FILE, LINE, NOTE, FLAGS, BASELINE] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const PROTECTED = 1;
const OUT_OF_SCOPE = 2;

function entityOf(cluster, row) {
  const flat = row[ENTITY];
  const entity = [];
  for (let place = 0; place < flat.length; place += 2) entity.push([cluster.types[flat[place]], flat[place + 1]]);
  return entity;
}

// Flat [key, value, ...] with numbers for keys, or null for what is not there.
function quotasOf(row, side) {
  const found = row[side];
  if (side === LIVE && found === 1) return row[DECLARED];
  return Array.isArray(found) ? found : null;
}

// What the cluster has after the next apply of these manifests, as far as limits go.
function plannedOf(cluster, row) {
  const declared = quotasOf(row, DECLARED);
  if ((row[FLAGS] || 0) & OUT_OF_SCOPE) return quotasOf(row, LIVE);
  if (declared !== null) return declared;
  return cluster.prunes ? null : quotasOf(row, LIVE);
}

function valueOf(quotas, key) {
  for (let place = 0; quotas !== null && place < quotas.length; place += 2) {
    if (quotas[place] === key) return quotas[place + 1];
  }
  return null;
}

function classOf(row) {
  return row[CLASS] < 0 ? null : DATA.classes[row[CLASS]];
}

function ownerOf(cluster, row) {
  return row[OWNER] ? cluster.owners[row[OWNER] - 1] : "";
}

function placeOf(cluster, row) {
  return row[FILE] ? cluster.files[row[FILE] - 1] + ":" + row[LINE] : "";
}
