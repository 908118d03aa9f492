// Model files: safetensors, with one JSON text under the metadata key "gristmill" and a checksum over it and all arrays.
//
// The checksum is over the JSON text as Python writes it, and Python tells 1 from 1.0: numbers are kept as the text they came as.

export const FORMATS = [1];
export class ModelFileError extends Error {
  name = "ModelFileError";
}

// ---- JSON as Python writes it -------------------------------------------------------------------------------------

export class NumberText {
  constructor(text) { this.text = text; }
  valueOf() { return Number(this.text); }
}

export function parse(text) {
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    token[0] === '"' ? token : `{"\\u0000":"${token}"}`);
  return JSON.parse(marked, (_, value) => (value && typeof value === "object" && "\0" in value ? new NumberText(value["\0"]) : value));
}

export function pythonNumber(value) {
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 53) return Object.is(value, -0) ? "-0.0" : String(value);
  const [digits, exponent] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 16) return plainDecimal(digits, power);
  return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}
function plainDecimal(digits, power) {
  const sign = digits[0] === "-" ? "-" : "", figures = digits.replace(/[-.]/g, "");
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${figures}`;
  const whole = figures.slice(0, power + 1).padEnd(power + 1, "0"), rest = figures.slice(power + 1);
  return `${sign}${whole}.${rest || "0"}`;
}

export function dump(value) {
  if (value instanceof NumberText) return value.text;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) return dump({ type: "float", value: value > 0 ? "inf" : value < 0 ? "-inf" : "nan" });
    return pythonNumber(value);
  }
  if (typeof value === "string")
    return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  if (value === null || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${value.map(dump).join(", ")}]`;
  return `{${Object.entries(value).map(([key, item]) => `${dump(key)}: ${dump(item)}`).join(", ")}}`;
}

// Numbers as numbers, and {"type": "float", "value": "inf"} as what it means.
export function plain(value) {
  if (value instanceof NumberText) return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  if (value.type === "float") return Number(value.value.replace("inf", "Infinity"));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

// ---- arrays -------------------------------------------------------------------------------------------------------

const TYPES = {
  F64: { python: "<f8", bytes: 8 }, I64: { python: "<i8", bytes: 8 }, U64: { python: "<u8", bytes: 8 },
  F32: { python: "<f4", bytes: 4 }, U8: { python: "|u1", bytes: 1 },
};
const ascii = (text) => new TextEncoder().encode(text);

// digest: a function of bytes to 32 hexadecimal figures.
function checksum(metadata, arrays, digest) {
  const pieces = [ascii(dump(metadata))];
  for (const name of Object.keys(arrays).sort()) {
    const { dtype, shape, bytes } = arrays[name];
    pieces.push(ascii(`${name} ${TYPES[dtype].python} (${shape.join(", ")}${shape.length === 1 ? "," : ""})`), bytes);
  }
  return digest(joined(pieces));
}
function joined(pieces) {
  const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) all.set(piece, at), (at += piece.length);
  return all;
}

// metadata: format, version, isa, class, parameters and fitted values. arrays: {name: {dtype, shape, bytes}}.
export function writeFile(metadata, arrays, digest) {
  const text = dump({ ...metadata, checksum: checksum(metadata, arrays, digest) });
  const header = { __metadata__: { gristmill: text } }, pieces = [];
  let at = 0;
  const byWidth = Object.keys(arrays).sort((a, b) => TYPES[arrays[b].dtype].bytes - TYPES[arrays[a].dtype].bytes || (a < b ? -1 : 1));
  for (const name of byWidth) {
    const { dtype, shape, bytes } = arrays[name];
    header[name] = { dtype, shape, data_offsets: [at, (at += bytes.length)] };
    pieces.push(bytes);
  }
  let head = JSON.stringify(header);
  head += " ".repeat((8 - (ascii(head).length % 8)) % 8);
  const start = new Uint8Array(8), encoded = ascii(head);
  new DataView(start.buffer).setBigUint64(0, BigInt(encoded.length), true);
  return joined([start, encoded, ...pieces]);
}

export function readFile(file, digest) {
  const bytes = file instanceof Uint8Array ? file : new Uint8Array(file);
  const refuse = (why) => { throw new ModelFileError(`these ${bytes.length} bytes are not a model that the browser module can read: ${why}`); };
  if (bytes.length < 8) refuse("they are too few");
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (length > bytes.length - 8) refuse("the header is cut off");
  let header, metadata;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, 8 + length)));
  } catch {
    refuse("the header is no JSON");
  }
  if (typeof header?.__metadata__?.gristmill !== "string") refuse("it has no gristmill metadata");
  try {
    metadata = parse(header.__metadata__.gristmill);
  } catch {
    refuse("its metadata are no JSON");
  }
  const data = bytes.subarray(8 + length), arrays = {};
  let end = 0;
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const { dtype, shape, data_offsets: [from, to] = [] } = entry ?? {};
    if (!(dtype in TYPES)) refuse(`its array ${name} has the type ${dtype}`);
    const sizes = Array.isArray(shape) && shape.every((n) => Number.isInteger(n) && n >= 0);
    if (!sizes || !(from >= 0 && to <= data.length) || to - from !== shape.reduce((a, b) => a * b, TYPES[dtype].bytes))
      refuse(`its array ${name} does not fit the file`);
    arrays[name] = { dtype, shape, bytes: data.slice(from, to) };
    end = Math.max(end, to);
  }
  if (end !== data.length) refuse("it is longer or shorter than its arrays");
  if (!FORMATS.includes(Number(metadata.format))) refuse(`it has format ${metadata.format?.text}, and this module reads ${FORMATS.join(", ")}`);
  const { checksum: stated, ...rest } = metadata;
  if (stated !== checksum(rest, arrays, digest)) refuse("its checksum is wrong, so it is damaged");
  return { metadata: rest, arrays };
}
