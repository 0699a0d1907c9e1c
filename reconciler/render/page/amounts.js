// Values with their units, digit for digit as the command line prints them.

const BINARY = [[1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"]];
const SUFFIX = {
  request_percentage: " %",
  controller_mutation_rate: " partitions/s",
  connection_creation_rate: " connections/s",
};
const BYTES = new Set(["producer_byte_rate", "consumer_byte_rate"]);

function exponentText(digits, exponent) {
  const mantissa = digits.length > 1 ? digits[0] + "." + digits.slice(1) : digits;
  return mantissa + "e" + (exponent < 0 ? "-" : "+") + String(Math.abs(exponent)).padStart(2, "0");
}

function positional(digits, exponent) {
  if (exponent < 0) return "0." + "0".repeat(-exponent - 1) + digits;
  if (digits.length <= exponent + 1) return digits.padEnd(exponent + 1, "0");
  return digits.slice(0, exponent + 1) + "." + digits.slice(exponent + 1);
}

// Shortest text that reads back as the same double.
function numberText(value) {
  if (typeof value === "string") return value;
  if (Number.isInteger(value) && Math.abs(value) <= 2 ** 63) return BigInt(value).toString();
  const [mantissa, power] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(power);
  const text = exponent >= -4 && exponent < 16 ? positional(digits, exponent) : exponentText(digits, exponent);
  return (value < 0 ? "-" : "") + text;
}

// Four significant digits, halves to even; the exact decimal digits of a double decide.
function fourDigits(value) {
  if (value === 0) return "0";
  const [mantissa, power] = Math.abs(value).toExponential(100).split("e");
  const all = mantissa.replace(".", "");
  const rest = all.slice(4);
  let head = Number(all.slice(0, 4));
  let exponent = Number(power);
  const tie = /^50*$/.test(rest);
  if (rest[0] > "5" || (rest[0] === "5" && !tie) || (tie && head % 2 === 1)) head += 1;
  if (head === 10000) {
    head = 1000;
    exponent += 1;
  }
  const digits = String(head).replace(/0+$/, "");
  const text = exponent >= -4 && exponent < 4 ? positional(digits, exponent) : exponentText(digits, exponent);
  return (value < 0 ? "-" : "") + text;
}

function grouped(number) {
  return number.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
}

// The exact number follows only where the unit is not exact.
function byteRate(value) {
  if (typeof value === "string") return value + " B/s";
  const [size, unit] = BINARY.find(([least]) => value >= least) || [1, "B"];
  const rounded = fourDigits(value / size);
  if (Number(rounded) * size === value) return rounded + " " + unit + "/s";
  const exact = grouped(numberText(value)) + " B/s";
  return size > 1 ? rounded + " " + unit + "/s (" + exact + ")" : exact;
}

function amount(key, value) {
  if (value === null) return "not set";
  return BYTES.has(key) ? byteRate(value) : numberText(value) + (SUFFIX[key] || "");
}
