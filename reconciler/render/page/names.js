// Names of entities: opaque text of strangers. Shown as the command line shows them, and read back from that form.

const DEFAULT = 0;
const PLAIN = /^[A-Za-z0-9\-_.@:/+=,%~]+$/;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

function escapeOne(character) {
  const code = character.codePointAt(0).toString(16);
  return code.length <= 4 ? "\\u" + code.padStart(4, "0") : "\\U" + code.padStart(8, "0");
}

function escaped(text) {
  return text.replace(UNPRINTABLE, escapeOne);
}

function displayName(name) {
  if (name === DEFAULT) return "<default>";
  if (PLAIN.test(name)) return name;
  return '"' + escaped(name.replace(/\\/g, "\\\\").replace(/"/g, '\\"')) + '"';
}

// What a person typed: as it is, or in quotes with escapes, as names are shown.
function typedName(text) {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text;
  return text.slice(1, -1).replace(/\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([^]))/g, (whole, short, long, other) => {
    if (other !== undefined) return other;
    const code = parseInt(short || long, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

// An entity is a list of [type, name].
function entityText(entity) {
  return entity.map(([type, name]) => type + "=" + displayName(name)).join(" ");
}
