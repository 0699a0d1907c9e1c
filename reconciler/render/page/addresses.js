// What a broker reads as a literal address (Java's InetAddress.getByName), and which bytes it stands for.

const MAPPED = /^(0*:)*:?0*ffff:/i;
const HEX_GROUP = /^0*[0-9a-fA-F]{1,4}$/;

function isIpv4(text) {
  const parts = text.split(".");
  if (text.length > 15 || parts.length > 4 || !parts.every((part) => /^[0-9]+$/.test(part))) return false;
  const numbers = parts.map(Number);
  return numbers.slice(0, -1).every((part) => part < 256) && numbers.at(-1) < 256 ** (5 - numbers.length);
}

function groupsOf(text) {
  return text ? text.split(":") : [];
}

// The text before and after the first "::"; the second is null without one.
function halves(text) {
  const at = text.indexOf("::");
  return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 2)];
}

function isIpv6(text) {
  const [head, tail] = halves(text);
  if (tail !== null && (tail.startsWith(":") || tail.includes("::"))) return false;
  const groups = [...groupsOf(head), ...groupsOf(tail || "")];
  let size = groups.length;
  if (groups.length && groups.at(-1).includes(".") && !text.endsWith("::")) {
    const last = groups.pop();
    size += 1;
    if (last.split(".").length !== 4 || !isIpv4(last)) return false;
  }
  if (!groups.every((group) => HEX_GROUP.test(group))) return false;
  return tail !== null ? size < 8 : size === 8;
}

// "literal", "invalid", or "ask-broker" for host names and for forms that only a broker can judge.
function ipVerdict(name) {
  if (!name) return "invalid";
  const bracketed = name.startsWith("[");
  if (bracketed) {
    if ([...name].length < 3 || !name.endsWith("]")) return "invalid";
    name = name.slice(1, -1);
  }
  if (/[^\0-\x7f]/.test(name)) return "ask-broker";
  if (!/^[0-9a-fA-F:]/.test(name)) return bracketed ? "invalid" : "ask-broker";
  if (isIpv4(name)) return bracketed ? "invalid" : "literal";
  if (!name.includes(":")) return "ask-broker";
  const percent = name.indexOf("%");
  const address = percent < 0 ? name : name.slice(0, percent);
  const zone = percent < 0 ? null : name.slice(percent + 1);
  if (!isIpv6(address) || zone === "") return "invalid";
  return zone !== null && (!/^[0-9]{1,9}$/.test(zone) || MAPPED.test(address)) ? "ask-broker" : "literal";
}

function ipv4Bytes(text) {
  const parts = text.split(".").map(Number);
  const last = parts.pop();
  const rest = 4 - parts.length;
  for (let place = rest - 1; place >= 0; place -= 1) parts.push(Math.floor(last / 256 ** place) % 256);
  return parts;
}

function groupBytes(group) {
  if (group.includes(".")) return ipv4Bytes(group);
  const number = parseInt(group, 16);
  return [number >> 8, number & 255];
}

// The 4 or 16 bytes of a literal; null for anything else. IPv4 mapped into IPv6 is that IPv4 address.
function addressBytes(name) {
  if (ipVerdict(name) !== "literal") return null;
  const text = name.startsWith("[") ? name.slice(1, -1) : name;
  if (isIpv4(text)) return ipv4Bytes(text);
  const [head, tail] = halves(text.split("%")[0]);
  const left = groupsOf(head).flatMap(groupBytes);
  const right = groupsOf(tail || "").flatMap(groupBytes);
  const packed = [...left, ...new Array(16 - left.length - right.length).fill(0), ...right];
  const mapped = packed.slice(0, 12).join() === [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255].join();
  return mapped ? packed.slice(12) : packed;
}

// As brokers print it.
function addressText(packed) {
  if (packed.length === 4) return packed.join(".");
  const groups = [];
  for (let place = 0; place < 16; place += 2) groups.push((packed[place] * 256 + packed[place + 1]).toString(16));
  return groups.join(":");
}
