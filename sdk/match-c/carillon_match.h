/*
 * carillon_match.h: a player of real-time matches of Carillon, in C99, as one header. MIT or Apache-2.0, at your choice.
 *
 * In one file of your program, write #define CARILLON_MATCH_IMPLEMENTATION before #include "carillon_match.h".
 *
 * It has no I/O, no clock and no heap: the game owns the socket (TLS with the ALPN name `carillon-match/1`, or a WebSocket with the subprotocol
 * `carillon-match.1`), gives what was read to cm_receive, and writes what cm_join, cm_send and others put into its buffer. The format is that of
 * docs/book/matches.md.
 *
 *   cm_player player; cm_frame frame; uint8_t out[CM_OUT_BYTES];
 *   cm_begin(&player);
 *   write(socket, out, cm_join(&player, token, out, sizeof out));
 *   while ((used = cm_receive(&player, bytes, length, &frame)) > 0) {      (0: the rest of a frame has to come, below 0: cm_text says why not)
 *       if (frame.kind == CM_TICK) {
 *           while (cm_next_input(&frame, &seat, &input, &input_length)) ...  (who is not among these repeats the last one: frame.of.tick.repeated)
 *           write(socket, out, cm_send(&player, now_ms, &held, 1, out, sizeof out));
 *       }
 *       bytes += used; length -= used;
 *   }
 *
 * After a lost connection cm_join again, with the same player and the same token, on a new connection whose stream begins anew.
 */
#ifndef CARILLON_MATCH_H
#define CARILLON_MATCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Bytes of the longest input that the player keeps, 512 at most. Define it before the header if the queue has another `input_bytes_max`. */
#ifndef CM_INPUT_BYTES
#define CM_INPUT_BYTES 64
#endif
/* Inputs that are kept until they are acknowledged, all of which fit into one frame. */
#define CM_KEPT 33
/* Bytes of the longest frame of a client, with its length, and of a server. */
#define CM_OUT_BYTES 2050
#define CM_IN_BYTES (64 * 1024 + 3)
#define CM_PART 1900

/* What cm_read and cm_receive return besides the bytes of a frame. */
enum { CM_MORE = 0, CM_TOO_LONG = -1, CM_SHORT = -2, CM_NUMBER = -3, CM_EXCESS = -4, CM_KIND = -5, CM_VALUE = -6 };

typedef enum { CM_WELCOME = 16, CM_TICK, CM_SEAT, CM_DESYNC, CM_PONG, CM_CLOCK, CM_ENDED, CM_ERROR, CM_UPDATE, CM_SNAPSHOT, CM_WANTED } cm_kind;
enum { CM_RELAY = 0, CM_LOCKSTEP = 1, CM_AUTHORITATIVE = 2 };                       /* welcome.mode */
enum { CM_AWAY = 0, CM_HERE = 1, CM_LEFT = 2 };                                     /* seat.state */
enum { CM_FINISHED = 0, CM_FORFEIT, CM_DURATION, CM_NOT_JOINED, CM_SHUTDOWN, CM_MODULE }; /* ended.reason */
enum { CM_NOBODY = 255 };                                /* clock.seat, and welcome.seat of a spectator */

/* What a frame begins with: its tick, the newest tick of the other side that its sender has, and which of the 32 before it lacks. */
typedef struct { uint32_t tick, ack, missing; } cm_header;

typedef struct {
    uint8_t seat, seats, mode, runs, tick_rate, input_delay;
    uint16_t input_bytes_max;
    uint32_t hold_ms;
    uint64_t present; /* a bit for each seat that is taken */
    uint64_t seed;
} cm_welcome;

/* Bytes within the stream that was read: they are there as long as it is. */
typedef struct { const uint8_t *data; size_t length; } cm_bytes;

/* A frame of the server. */
typedef struct {
    cm_kind kind;
    cm_header header;
    union {
        cm_welcome welcome;
        struct { uint64_t given, repeated, left; uint32_t even; cm_bytes rest; } tick; /* read by cm_next_input */
        struct { uint8_t seat, state; } seat;
        struct { uint64_t minority; uint32_t hash; } desync;
        cm_bytes pong, update, snapshot; /* where a module decides: what it says of a tick; the state after it, in place of what was before */
        struct { uint8_t runs, seat; } clock;
        struct { uint8_t reason; uint64_t seats; cm_bytes outcome; } ended;
        struct { uint8_t code; cm_bytes text; } error;
        struct { uint8_t whole; } wanted; /* answered by cm_write_hash of cm_hash, and if `whole` by all parts of cm_write_snapshot */
    } of;
} cm_frame;

/* A player. It outlives its connections. */
typedef struct {
    cm_welcome welcome;
    int is_joined;        /* a welcome came on this connection */
    uint32_t have;        /* the last tick that came */
    uint32_t sent, first; /* the newest tick that an input was sent for, and the first on this connection */
    uint64_t sent_ms;
    uint32_t lead;        /* for how many ticks ahead inputs are sent */
    uint32_t late, in_time;
    uint32_t kept;        /* inputs that are not acknowledged: those of sent - kept + 1 to sent */
    uint16_t lengths[CM_KEPT];
    uint8_t inputs[CM_KEPT][CM_INPUT_BYTES];
} cm_player;

/* Reads the first frame of a stream. Returns the bytes that it has, CM_MORE if they are not all there, or why it is none. */
long cm_read(const uint8_t *stream, size_t length, cm_frame *frame);
/* The next of the inputs that are in a tick, from the lowest seat on; 0 if there is none any more. */
int cm_next_input(cm_frame *frame, int *seat, const uint8_t **input, size_t *length);
/* Whether a frame with this header acknowledges a tick. */
int cm_acknowledges(const cm_header *header, uint32_t tick);
/* A word for what cm_read returned, and for the code of an error of the server. */
const char *cm_text(long result);
const char *cm_code(uint8_t code);

/* What writes a frame returns its bytes, or 0 if `room` is not enough for it: CM_OUT_BYTES is. */
size_t cm_write_join(uint32_t have, const char *token, uint8_t *out, size_t room);
size_t cm_write_inputs(cm_header header, const cm_bytes *newest_first, size_t count, uint8_t *out, size_t room);
size_t cm_write_hash(uint32_t tick, uint32_t hash, uint8_t *out, size_t room);
size_t cm_write_ping(const uint8_t *stamp, size_t length, uint8_t *out, size_t room);
size_t cm_write_pause(uint8_t *out, size_t room);
size_t cm_write_continue(uint8_t *out, size_t room);
size_t cm_write_forfeit(uint8_t *out, size_t room);
size_t cm_write_outcome(uint32_t tick, const uint8_t *outcome, size_t length, uint8_t *out, size_t room);
/* The part of a state from `offset` on, of CM_PART bytes or the rest; and the hash by which states are compared. */
size_t cm_write_snapshot(uint32_t tick, const uint8_t *state, size_t length, size_t offset, uint8_t *out, size_t room);
uint32_t cm_hash(const uint8_t *state, size_t length);

/* A player who has seen nothing yet. */
void cm_begin(cm_player *player);
/* Takes the seat of a token, for the first time or after a lost connection. */
size_t cm_join(cm_player *player, const char *token, uint8_t *out, size_t room);
/* cm_read, and what the player has to know of the frame. */
long cm_receive(cm_player *player, const uint8_t *stream, size_t length, cm_frame *frame);
/*
 * Sends an input, with those that are not acknowledged. In lockstep, call it once per tick: the input counts from player->lead ticks ahead on. Returns 0
 * if nothing is sent: not joined, the input is too long, too early, or too many wait. `now_ms` is any clock that does not go back.
 */
size_t cm_send(cm_player *player, uint64_t now_ms, const uint8_t *input, size_t length, uint8_t *out, size_t room);
/* Sends those again that are not acknowledged: in a relayed match, after each welcome, and when the clock runs. */
size_t cm_send_again(const cm_player *player, uint8_t *out, size_t room);
#ifdef __cplusplus
}
#endif
#endif /* CARILLON_MATCH_H */

#ifdef CARILLON_MATCH_IMPLEMENTATION
#undef CARILLON_MATCH_IMPLEMENTATION
#include <string.h>

/* ---- reading: once something is wrong, nothing more is read, and the first reason stays */

typedef struct { const uint8_t *at, *end; long wrong; } cm_reader;

static void cm_wrong(cm_reader *from, long why) {
    if (from->wrong == 0) from->wrong = why;
}

static const uint8_t *cm_take(cm_reader *from, size_t length) {
    const uint8_t *at = from->at;
    if ((size_t)(from->end - at) < length) cm_wrong(from, CM_SHORT);
    if (from->wrong != 0) return NULL;
    from->at += length;
    return at;
}

static uint8_t cm_byte(cm_reader *from) {
    const uint8_t *at = cm_take(from, 1);
    return at ? *at : 0;
}

/* LEB128, of 64 bits at most, written in the shortest way. */
static uint64_t cm_varint(cm_reader *from) {
    uint64_t number = 0;
    unsigned shift;
    for (shift = 0; from->wrong == 0; shift += 7) {
        uint8_t byte = cm_byte(from);
        if (shift == 63 && byte > 1) cm_wrong(from, CM_NUMBER);
        if (from->wrong != 0) break;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte >= 0x80) continue;
        if (byte == 0 && shift > 0) cm_wrong(from, CM_NUMBER);
        return number;
    }
    return 0;
}

static uint32_t cm_u32(cm_reader *from) {
    uint64_t number = cm_varint(from);
    if (number > UINT32_MAX) cm_wrong(from, CM_NUMBER);
    return (uint32_t)number;
}

static uint64_t cm_fixed(cm_reader *from, size_t length) {
    const uint8_t *at = cm_take(from, length);
    uint64_t number = 0;
    while (at && length > 0) number = number << 8 | at[--length];
    return number;
}

/* A byte that has a meaning only up to `last`. */
static uint8_t cm_word(cm_reader *from, uint8_t first, uint8_t last) {
    uint8_t byte = cm_byte(from);
    if (byte < first || byte > last) cm_wrong(from, CM_VALUE);
    return byte;
}

static cm_bytes cm_rest(cm_reader *from) {
    cm_bytes rest = { from->at, (size_t)(from->end - from->at) };
    cm_take(from, rest.length);
    return rest;
}

static void cm_read_header(cm_reader *from, cm_header *header) {
    uint64_t folded;
    int64_t ack;
    header->tick = cm_u32(from);
    folded = cm_varint(from);
    if (folded >> 34 != 0) cm_wrong(from, CM_NUMBER);
    ack = (int64_t)header->tick - ((folded & 1) ? -(int64_t)(folded >> 1) - 1 : (int64_t)(folded >> 1));
    if (ack < 0 || ack > (int64_t)UINT32_MAX) cm_wrong(from, CM_NUMBER);
    header->ack = (uint32_t)ack;
    header->missing = cm_u32(from);
}

static void cm_read_welcome(cm_reader *from, cm_welcome *welcome) {
    uint32_t input_bytes_max;
    welcome->seat = cm_byte(from);
    welcome->seats = cm_byte(from);
    welcome->mode = cm_word(from, CM_RELAY, CM_AUTHORITATIVE);
    welcome->runs = cm_word(from, 0, 1);
    welcome->tick_rate = cm_word(from, 1, 255);
    welcome->input_delay = cm_byte(from);
    welcome->present = cm_varint(from);
    input_bytes_max = cm_u32(from);
    welcome->input_bytes_max = (uint16_t)input_bytes_max;
    welcome->hold_ms = cm_u32(from);
    welcome->seed = cm_fixed(from, 8);
    if (welcome->seats > 64 || (welcome->seat >= welcome->seats && welcome->seat != CM_NOBODY) || input_bytes_max > UINT16_MAX) cm_wrong(from, CM_VALUE);
}

static int cm_take_input(cm_reader *from, uint64_t *left, uint32_t even, int *seat, const uint8_t **input, size_t *length) {
    if (*left == 0 || from->wrong != 0) return 0;
    for (*seat = 0; (*left >> *seat & 1) == 0;) ++*seat;
    *left &= ~((uint64_t)1 << *seat);
    *length = even == 0 ? cm_u32(from) : even - 1;
    if (*length > 512) cm_wrong(from, CM_TOO_LONG);
    *input = cm_take(from, *length);
    return from->wrong == 0;
}

static void cm_read_tick(cm_reader *from, cm_frame *frame) {
    int seat;
    const uint8_t *input;
    size_t length;
    uint64_t left;
    frame->of.tick.given = left = cm_varint(from);
    frame->of.tick.left = left;
    frame->of.tick.repeated = cm_varint(from);
    if ((left & frame->of.tick.repeated) != 0) cm_wrong(from, CM_VALUE);
    frame->of.tick.even = cm_u32(from);
    frame->of.tick.rest.data = from->at, frame->of.tick.rest.length = (size_t)(from->end - from->at);
    while (cm_take_input(from, &left, frame->of.tick.even, &seat, &input, &length)) {}
}

static void cm_read_body(cm_reader *from, uint32_t kind, cm_frame *frame) {
    switch (kind) {
    case CM_WELCOME: cm_read_welcome(from, &frame->of.welcome); break;
    case CM_TICK: cm_read_tick(from, frame); break;
    case CM_SEAT: frame->of.seat.seat = cm_byte(from), frame->of.seat.state = cm_word(from, CM_AWAY, CM_LEFT); break;
    case CM_DESYNC: frame->of.desync.minority = cm_varint(from), frame->of.desync.hash = (uint32_t)cm_fixed(from, 4); break;
    case CM_WANTED: frame->of.wanted.whole = cm_word(from, 0, 1); break;
    case CM_PONG: case CM_UPDATE: case CM_SNAPSHOT: frame->of.pong = cm_rest(from); break;
    case CM_CLOCK: frame->of.clock.runs = cm_word(from, 0, 1), frame->of.clock.seat = cm_byte(from); break;
    case CM_ENDED:
        frame->of.ended.reason = cm_word(from, CM_FINISHED, CM_MODULE), frame->of.ended.seats = cm_varint(from);
        frame->of.ended.outcome = cm_rest(from); break;
    case CM_ERROR: frame->of.error.code = cm_word(from, 1, 14), frame->of.error.text = cm_rest(from); break;
    default: cm_wrong(from, CM_KIND);
    }
}

long cm_read(const uint8_t *stream, size_t length, cm_frame *frame) {
    cm_reader from;
    uint64_t bytes;
    uint32_t kind;
    from.at = stream, from.end = stream + length, from.wrong = 0;
    bytes = cm_varint(&from);
    if (from.wrong == CM_SHORT) return CM_MORE;
    if (from.wrong != 0) return from.wrong;
    if (bytes > 64 * 1024) return CM_TOO_LONG;
    if ((uint64_t)(from.end - from.at) < bytes) return CM_MORE;
    from.end = from.at + bytes;
    memset(frame, 0, sizeof *frame);
    kind = cm_u32(&from);
    cm_read_header(&from, &frame->header);
    cm_read_body(&from, kind, frame);
    if (from.at != from.end) cm_wrong(&from, CM_EXCESS);
    frame->kind = (cm_kind)kind;
    return from.wrong != 0 ? from.wrong : (long)(from.end - stream);
}

int cm_next_input(cm_frame *frame, int *seat, const uint8_t **input, size_t *length) {
    cm_reader from;
    cm_bytes *rest = &frame->of.tick.rest;
    from.at = rest->data, from.end = rest->data + rest->length, from.wrong = 0;
    if (!cm_take_input(&from, &frame->of.tick.left, frame->of.tick.even, seat, input, length)) return 0;
    rest->data = from.at, rest->length = (size_t)(from.end - from.at);
    return 1;
}

int cm_acknowledges(const cm_header *header, uint32_t tick) {
    uint32_t behind = header->ack - tick;
    if (tick > header->ack) return 0;
    /* Of what is older than that it says nothing: it is taken for granted. */
    return behind == 0 || behind > 32 || (header->missing >> (behind - 1) & 1) == 0;
}

const char *cm_text(long result) {
    static const char *const texts[] = { "more has to come", "a frame or an input is too long", "the frame ends too early",
        "a number is too large, or not written in the shortest way", "bytes follow the end of the frame", "no frame is of this kind",
        "a field has a value that means nothing" };
    return result <= 0 && result >= CM_VALUE ? texts[-result] : "a frame";
}

const char *cm_code(uint8_t code) {
    static const char *const codes[] = { "", "malformed", "too-long", "bad-token", "expired-token", "no-match", "left", "replaced", "not-joined",
        "too-far", "too-old", "idle", "too-slow", "elsewhere", "shutdown" };
    return code < sizeof codes / sizeof *codes ? codes[code] : "";
}

/* ---- writing: a frame is written behind room for its length, and moved to it */

typedef struct { uint8_t *out, *at, *end; int is_full; } cm_writer;

static void cm_put(cm_writer *to, const void *bytes, size_t length) {
    if ((size_t)(to->end - to->at) < length) to->is_full = 1;
    if (to->is_full || length == 0) return;
    memcpy(to->at, bytes, length);
    to->at += length;
}

static void cm_put_varint(cm_writer *to, uint64_t number) {
    uint8_t byte;
    for (; number >= 0x80; number >>= 7) byte = (uint8_t)(number | 0x80), cm_put(to, &byte, 1);
    byte = (uint8_t)number, cm_put(to, &byte, 1);
}

static cm_writer cm_open(int kind, cm_header header, uint8_t *out, size_t room) {
    cm_writer to;
    to.out = out, to.end = out + room, to.is_full = room < 2;
    to.at = to.is_full ? out : out + 2;
    cm_put_varint(&to, (uint64_t)kind);
    cm_put_varint(&to, header.tick);
    cm_put_varint(&to, header.tick >= header.ack ? 2 * (uint64_t)(header.tick - header.ack) : 2 * (uint64_t)(header.ack - header.tick) - 1);
    cm_put_varint(&to, header.missing);
    return to;
}

static size_t cm_close(cm_writer *to) {
    size_t length = to->is_full ? 0 : (size_t)(to->at - to->out) - 2;
    if (to->is_full || length > 2048) return 0;
    if (length < 0x80) {
        to->out[0] = (uint8_t)length;
        memmove(to->out + 1, to->out + 2, length);
        return length + 1;
    }
    to->out[0] = (uint8_t)(length | 0x80);
    to->out[1] = (uint8_t)(length >> 7);
    return length + 2;
}

static size_t cm_write(int kind, uint32_t tick, const void *payload, size_t length, uint8_t *out, size_t room) {
    cm_header header = { 0, 0, 0 };
    cm_writer to;
    header.tick = tick, to = cm_open(kind, header, out, room);
    cm_put(&to, payload, length);
    return cm_close(&to);
}

size_t cm_write_inputs(cm_header header, const cm_bytes *newest_first, size_t count, uint8_t *out, size_t room) {
    cm_writer to = cm_open(2, header, out, room);
    size_t at;
    for (at = 0; at < count; at++) {
        cm_put_varint(&to, newest_first[at].length);
        cm_put(&to, newest_first[at].data, newest_first[at].length);
    }
    return cm_close(&to);
}

size_t cm_write_hash(uint32_t tick, uint32_t hash, uint8_t *out, size_t room) {
    uint8_t bytes[4] = { (uint8_t)hash, (uint8_t)(hash >> 8), (uint8_t)(hash >> 16), (uint8_t)(hash >> 24) };
    return cm_write(3, tick, bytes, sizeof bytes, out, room);
}

size_t cm_write_join(uint32_t have, const char *token, uint8_t *out, size_t room) { return cm_write(1, have, token, strlen(token), out, room); }
size_t cm_write_ping(const uint8_t *stamp, size_t length, uint8_t *out, size_t room) { return cm_write(4, 0, stamp, length, out, room); }
size_t cm_write_pause(uint8_t *out, size_t room) { return cm_write(5, 0, NULL, 0, out, room); }
size_t cm_write_continue(uint8_t *out, size_t room) { return cm_write(6, 0, NULL, 0, out, room); }
size_t cm_write_forfeit(uint8_t *out, size_t room) { return cm_write(7, 0, NULL, 0, out, room); }
size_t cm_write_outcome(uint32_t tick, const uint8_t *outcome, size_t length, uint8_t *out, size_t room) {
    return cm_write(8, tick, outcome, length, out, room);
}

size_t cm_write_snapshot(uint32_t tick, const uint8_t *state, size_t length, size_t offset, uint8_t *out, size_t room) {
    cm_header header = { 0, 0, 0 };
    cm_writer to;
    header.tick = tick, to = cm_open(9, header, out, room);
    cm_put_varint(&to, offset), cm_put_varint(&to, length);
    cm_put(&to, state + offset, length - offset < CM_PART ? length - offset : CM_PART);
    return cm_close(&to);
}

uint32_t cm_hash(const uint8_t *state, size_t length) {
    uint32_t hash = 0x811c9dc5;
    while (length-- > 0) hash = (hash ^ *state++) * 0x01000193u;
    return hash;
}

/* ---- the player */

void cm_begin(cm_player *player) { memset(player, 0, sizeof *player); }

size_t cm_join(cm_player *player, const char *token, uint8_t *out, size_t room) {
    player->is_joined = 0, player->first = UINT32_MAX;
    return cm_write_join(player->have, token, out, room);
}
static int cm_is_relay(const cm_player *player) { return player->welcome.mode == CM_RELAY; }

/* Inputs that come too late again and again leave earlier, and later again when that was for nothing. */
static void cm_judge(cm_player *player, int is_in_time) {
    if (is_in_time) player->in_time++;
    else player->late++, player->in_time = 0;
    if (player->late < 3 && player->in_time < 10u * player->welcome.tick_rate) return;
    if (!is_in_time && player->lead < 30) player->lead++;
    if (is_in_time && player->lead > player->welcome.input_delay) player->lead--;
    player->late = player->in_time = 0;
}

static void cm_ticked(cm_player *player, const cm_header *header) {
    if (header->tick > player->have) player->have = header->tick;
    if (!cm_is_relay(player) && header->tick >= player->first && header->tick <= player->sent) cm_judge(player, cm_acknowledges(header, header->tick));
    while (player->kept > 0) {
        uint32_t oldest = player->sent - player->kept + 1;
        if (!cm_acknowledges(header, oldest) && (cm_is_relay(player) || oldest > header->tick)) break;
        player->kept--;
    }
}

long cm_receive(cm_player *player, const uint8_t *stream, size_t length, cm_frame *frame) {
    long used = cm_read(stream, length, frame);
    if (used <= 0) return used;
    if (frame->kind == CM_TICK || frame->kind == CM_UPDATE || frame->kind == CM_SNAPSHOT) cm_ticked(player, &frame->header);
    if (frame->kind == CM_WELCOME) {
        player->welcome = frame->of.welcome, player->is_joined = 1;
        if (player->lead < player->welcome.input_delay) player->lead = player->welcome.input_delay;
        /* Of a player who was here in another life of the program the server knows more. */
        if (frame->header.ack > player->sent) player->sent = frame->header.ack, player->kept = 0;
    }
    if (frame->kind == CM_CLOCK) player->welcome.runs = frame->of.clock.runs;
    return used;
}

static void cm_keep(cm_player *player, const uint8_t *input, size_t length) {
    uint32_t at = ++player->sent % CM_KEPT;
    if (length > 0) memcpy(player->inputs[at], input, length);
    player->lengths[at] = (uint16_t)length;
    if (player->kept < CM_KEPT) player->kept++;
}

static size_t cm_send_newest(const cm_player *player, uint32_t most, uint8_t *out, size_t room) {
    cm_bytes newest_first[CM_KEPT];
    cm_header header = { 0, 0, 0 };
    uint32_t count, total = 0;
    for (count = 0; count < player->kept && count < most; count++) {
        uint32_t at = (player->sent - count) % CM_KEPT;
        newest_first[count].data = player->inputs[at];
        newest_first[count].length = player->lengths[at];
        /* A frame has 2048 bytes at most. */
        if ((total += player->lengths[at] + 2u) > 2000) break;
    }
    header.tick = player->sent, header.ack = player->have;
    return count == 0 ? 0 : cm_write_inputs(header, newest_first, count, out, room);
}

size_t cm_send(cm_player *player, uint64_t now_ms, const uint8_t *input, size_t length, uint8_t *out, size_t room) {
    uint32_t from, to, next = player->sent + 1;
    if (!player->is_joined || length > CM_INPUT_BYTES || length > player->welcome.input_bytes_max) return 0;
    if (cm_is_relay(player)) {
        if (player->kept == CM_KEPT) return 0;
        cm_keep(player, input, length);
        return cm_send_newest(player, 8, out, room);
    }
    /* Ticks of a player who comes back are given all at once: an input for each of them would be late, and too many. */
    if (player->first != UINT32_MAX && now_ms - player->sent_ms < 400u / player->welcome.tick_rate) return 0;
    from = next > player->have ? next : player->have + 1;
    to = player->have + player->lead;
    if (from > to) return 0;
    /* Inputs of a frame are of consecutive ticks. */
    if (from > next) player->kept = 0;
    for (player->sent = from - 1; player->sent < to;) cm_keep(player, input, length);
    if (from < player->first) player->first = from;
    player->sent_ms = now_ms;
    return cm_send_newest(player, to - from + 1 > 8 ? to - from + 1 : 8, out, room);
}

size_t cm_send_again(const cm_player *player, uint8_t *out, size_t room) { return cm_send_newest(player, CM_KEPT, out, room); }

#endif /* CARILLON_MATCH_IMPLEMENTATION */
