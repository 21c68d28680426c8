// Refuses messages of accounts that send too many. Its configuration is how many an account may send in ten seconds.
// All sessions of an account are on one shard, whose instance counts them.

@external("carillon:hooks@1", "field")
declare function field(field: i32, at: usize, size: i32): i32;
@external("carillon:hooks@1", "output")
declare function output(kind: i32, at: usize, size: i32): void;
@external("carillon:hooks@1", "count")
declare function count(counter: i32, by: i32): void;
@external("carillon:hooks@1", "now")
declare function now(): i64;

const FROM = 1, CONFIG = 9;
const TEXT = 0, CONDITION = 1;
const PASS = 0, REJECT = 2;

const WINDOW_MS: i64 = 10_000;
// Accounts are counted in a table of fixed size, by a hash of their names: two that share a place share its bound.
const PLACES = 4096;

const buffer = memory.data(4096);
const condition = memory.data<u8>([114, 101, 115, 111, 117, 114, 99, 101, 45, 99, 111, 110, 115, 116, 114, 97, 105, 110, 116]); // resource-constraint
const text = memory.data<u8>([116, 111, 111, 32, 109, 97, 110, 121, 32, 109, 101, 115, 115, 97, 103, 101, 115]); // too many messages
const begun = memory.data(PLACES * 8, 8);
const sent = memory.data(PLACES * 4, 4);

// The number in the configuration, or 20.
function limit(): u32 {
  const size = field(CONFIG, buffer, 16);
  let number: u32 = 0;
  for (let i = 0; i < min(size, 16); i++) {
    const digit = load<u8>(buffer + i) - 48;
    if (digit > 9) return 20;
    number = number * 10 + digit;
  }
  return number > 0 ? number : 20;
}

// FNV-1a of the sender's bare address.
function place(): u32 {
  const size = min(field(FROM, buffer, 4096), 4096);
  let hash: u32 = 2166136261;
  for (let i = 0; i < size; i++) {
    const byte = load<u8>(buffer + i);
    if (byte == 47) break; // the resource
    hash = (hash ^ byte) * 16777619;
  }
  return (hash ^ (hash >> 12)) % PLACES;
}

function decide(): i32 {
  const at = place(), time = now();
  if (time - load<i64>(begun + at * 8) >= WINDOW_MS) {
    store<i64>(begun + at * 8, time);
    store<u32>(sent + at * 4, 0);
  }
  const number = load<u32>(sent + at * 4) + 1;
  store<u32>(sent + at * 4, number);
  if (number <= limit()) return PASS;
  count(0, 1);
  output(CONDITION, condition, 19);
  output(TEXT, text, 17);
  return REJECT;
}

export function submit_message(): i32 {
  return decide();
}

export function room_message(): i32 {
  return decide();
}
