// SPDX-License-Identifier: BSD-3-Clause
// Reads the format of timeline_json.h into flat arrays, because a million objects would take too much memory.

const NEVER = -1;
const CALL_TYPES = ["collective", "send", "receive"];

class Bytes {
  constructor(base64) {
    const text = atob(base64);
    this.bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) this.bytes[i] = text.charCodeAt(i);
    this.at = 0;
  }
  get done() { return this.at >= this.bytes.length; }
  number() {
    let result = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.at++];
      result += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return result;
  }
  signed() { return unzigzag(this.number()); }
  time(base) {
    const number = this.number();
    return number === 0 ? NEVER : base + unzigzag(number - 1);
  }
}

function unzigzag(number) { return number % 2 === 0 ? number / 2 : -(number + 1) / 2; }

// Arrays with room for everything in `bytes`, if each item takes at least `least` bytes.
function room(bytes, least, types) {
  const size = Math.ceil(bytes.bytes.length / least);
  return Object.fromEntries(Object.entries(types).map(([name, type]) => [name, new type(size)]));
}

// Reads one list for each rank, one after the other. Calls `begin()` before each list and `read(at)` for each item.
function readLists(bytes, begin, read) {
  const offsets = [0];
  let at = 0;
  while (!bytes.done) {
    begin();
    for (let left = bytes.number(); left > 0; --left) read(at++);
    offsets.push(at);
  }
  return Uint32Array.from(offsets);
}

function cut(columns, size) {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.subarray(0, size)]));
}

function readCalls(data, kinds) {
  const bytes = new Bytes(data.calls);
  const calls = room(bytes, 4, { kind: Uint32Array, number: Uint32Array, created: Float64Array, started: Float64Array,
    ended: Float64Array });
  const reader = { bytes, kinds, calls, meetings: new Map(), numbers: new Map(), before: 0 };
  const offsets = readLists(bytes, () => {
    reader.numbers.clear();
    reader.before = 0;
  }, (at) => readCall(reader, at));
  const size = offsets[offsets.length - 1];
  return { offsets, ...cut(calls, size), failed: readFailures(data, size) };
}

// 1 for each call that failed. Pages of earlier versions do not say which calls failed.
function readFailures(data, size) {
  const bytes = new Bytes(data.failed ?? ""), failed = new Uint8Array(size);
  for (let at = -1; !bytes.done;) {
    at += 1 + bytes.number();
    failed[at] = 1;
  }
  return failed;
}

// How long the call waited for other ranks. tookText() says how long it took after that, and whether it failed.
function waitedText(calls, i) {
  const until = calls.started[i] === NEVER ? calls.ended[i] : calls.started[i];
  return until === NEVER ? "to the end" : timeText(until - calls.created[i]);
}

function tookText(calls, i) {
  if (calls.ended[i] === NEVER) return "never ended";
  const took = calls.started[i] === NEVER ? "" : timeText(calls.ended[i] - calls.started[i]);
  if (!calls.failed[i]) return took;
  return took === "" ? "failed" : `failed after ${took}`;
}

function readCall(reader, at) {
  const { bytes, kinds, calls, meetings, numbers } = reader;
  const head = bytes.number();
  const kind = Math.floor(head / 2);
  const { group, collective } = kinds[kind];
  const place = group * 2 + (collective ? 0 : 1);
  const number = (numbers.get(place) ?? 0) + 1 + (head % 2 === 0 ? 0 : bytes.signed());
  numbers.set(place, number);
  const created = reader.before + bytes.signed();
  const key = group * 2 ** 32 + number;
  const first = collective ? meetings.get(key) : undefined;  // the first call of the collective that has ended
  const started = bytes.time(first === undefined ? created : calls.started[first]);
  const own = started === NEVER ? created : started;
  const ended = bytes.time(first === undefined ? own : calls.ended[first]);
  if (collective && first === undefined && started !== NEVER && ended !== NEVER) meetings.set(key, at);
  calls.kind[at] = kind;
  calls.number[at] = number;
  calls.created[at] = created;
  calls.started[at] = started;
  calls.ended[at] = ended;
  reader.before = ended === NEVER ? created : ended;
}

function readSpans(data) {
  const bytes = new Bytes(data.spans);
  const spans = room(bytes, 3, { name: Uint32Array, begin: Float64Array, end: Float64Array });
  let before = 0;
  const offsets = readLists(bytes, () => { before = 0; }, (at) => {
    spans.name[at] = bytes.number();
    spans.begin[at] = before + bytes.signed();
    spans.end[at] = bytes.time(spans.begin[at]);
    before = spans.end[at] === NEVER ? spans.begin[at] : spans.end[at];
  });
  return { offsets, names: data.span_names, ...cut(spans, offsets[offsets.length - 1]) };
}

function readKind(data, [group, signature, site, type, peer, tag]) {
  const [name, fingerprint, label] = data.signatures[signature];
  return { group, name, fingerprint, label, site: data.sites[site], type: CALL_TYPES[type], collective: type === 0,
    peer, tag };
}

// Gives each call a track within its rank's row, so that calls that overlap in time have different tracks. Also
// computes the latest end among this call and the rank's earlier calls, with which a search finds where to begin.
function addLanes(calls, end) {
  const size = calls.kind.length;
  calls.lane = new Uint8Array(size);
  calls.latest = new Float64Array(size);
  calls.lanes = new Uint8Array(calls.offsets.length - 1);
  for (let rank = 0; rank + 1 < calls.offsets.length; ++rank) {
    const free = [];
    let latest = -Infinity;
    for (let i = calls.offsets[rank]; i < calls.offsets[rank + 1]; ++i) {
      const own = calls.ended[i] === NEVER ? end : calls.ended[i];
      let lane = free.findIndex((time) => time <= calls.created[i]);
      if (lane < 0) lane = Math.min(free.length, LANES_MOST - 1);
      free[lane] = own;
      calls.lane[i] = lane;
      calls.latest[i] = latest = Math.max(latest, own);
    }
    calls.lanes[rank] = Math.max(free.length, 1);
  }
}

const LANES_MOST = 4;

// The timeline of a run; null if the page has none.
function readTimeline(run) {
  const data = run.timeline;
  if (!data) return null;
  const kinds = data.kinds.map((kind) => readKind(data, kind));
  const calls = readCalls(data, kinds);
  const end = run.report.end_time_ns ?? 0;  // if nobody measured the run: the time of its last call
  addLanes(calls, end);
  return { kinds, calls, spans: readSpans(data), leftOut: data.left_out, spansLeftOut: data.spans_left_out,
    groups: data.groups,
    ranks: calls.offsets.length - 1, end };
}
