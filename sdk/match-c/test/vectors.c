/* The frames, as every client of the repository has to write and read them: vectors FILE. Prints what differs. */
#define CARILLON_MATCH_IMPLEMENTATION
#include "../carillon_match.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int failures = 0, checked[3] = { 0, 0, 0 };

static void fail(const char *name, const char *expected, const char *found) {
    failures++;
    printf("%s\n  expected %s\n  found    %s\n", name, expected, found);
}

static size_t from_hex(const char *text, size_t length, uint8_t *out) {
    size_t at;
    for (at = 0; at < length / 2; at++) {
        unsigned byte = 0;
        sscanf(text + 2 * at, "%2x", &byte);
        out[at] = (uint8_t)byte;
    }
    return length / 2;
}

static char *hex(char *out, const uint8_t *bytes, size_t length) {
    size_t at;
    for (at = 0; at < length; at++) out += sprintf(out, "%02x", bytes[at]);
    *out = 0;
    return out;
}

/* The value of a field of a line; its length. */
static size_t field(const char *fields, const char *name, const char **value) {
    size_t length = strlen(name);
    const char *at = fields;
    while (at && !(strncmp(at, name, length) == 0 && at[length] == '=')) at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    *value = at ? at + length + 1 : "";
    return strcspn(*value, " ");
}

static uint32_t number(const char *fields, const char *name) {
    const char *value;
    field(fields, name, &value);
    return (uint32_t)strtoul(value, NULL, 10);
}

static size_t bytes(const char *fields, const char *name, uint8_t *out) {
    const char *value;
    size_t length = field(fields, name, &value);
    return from_hex(value, length, out);
}

static size_t write_inputs(const char *fields, uint8_t *out, size_t room) {
    static uint8_t data[2048];
    cm_bytes inputs[CM_KEPT];
    cm_header header;
    size_t count = 0, used = 0, length;
    const char *value, *end;
    header.tick = number(fields, "tick");
    header.ack = number(fields, "ack");
    header.missing = number(fields, "missing");
    length = field(fields, "inputs", &value);
    for (end = value + length; value <= end; value += length + 1, count++) {
        length = strcspn(value, ", ");
        inputs[count].data = data + used;
        inputs[count].length = from_hex(value, length, data + used);
        used += inputs[count].length;
    }
    return cm_write_inputs(header, inputs, count, out, room);
}

static size_t written(const char *name, const char *fields, uint8_t *out, size_t room) {
    uint8_t data[512];
    size_t length;
    if (strcmp(name, "join") == 0) {
        data[bytes(fields, "token", data)] = 0;
        return cm_write_join(number(fields, "have"), (const char *)data, out, room);
    }
    if (strcmp(name, "inputs") == 0) return write_inputs(fields, out, room);
    if (strcmp(name, "hash") == 0) return cm_write_hash(number(fields, "tick"), number(fields, "hash"), out, room);
    if (strcmp(name, "ping") == 0) {
        length = bytes(fields, "stamp", data);
        return cm_write_ping(data, length, out, room);
    }
    if (strcmp(name, "pause") == 0) return cm_write_pause(out, room);
    if (strcmp(name, "continue") == 0) return cm_write_continue(out, room);
    if (strcmp(name, "forfeit") == 0) return cm_write_forfeit(out, room);
    if (strcmp(name, "snapshot") == 0) {
        static uint8_t state[64 * 1024];
        uint32_t offset = number(fields, "offset");
        bytes(fields, "part", state + offset);
        return cm_write_snapshot(number(fields, "tick"), state, number(fields, "total"), offset, out, room);
    }
    length = bytes(fields, "outcome", data);
    return cm_write_outcome(number(fields, "tick"), data, length, out, room);
}

static void check_client(const char *expected, const char *name, const char *fields) {
    uint8_t *out = malloc(CM_OUT_BYTES);
    char found[2 * CM_OUT_BYTES + 1];
    size_t length = written(name, fields, out, CM_OUT_BYTES), room;
    hex(found, out, length);
    if (strcmp(found, expected) != 0) fail(name, expected, found);
    /* With less room nothing is written, and nothing behind it: the sanitizer looks at that. */
    for (room = 0; room < length; room++) {
        uint8_t *small = malloc(room + 1);
        if (written(name, fields, small, room) != 0) fail(name, "no room", "a frame");
        free(small);
    }
    free(out);
    checked[0]++;
}

static void show_tick(cm_frame *frame, char *out) {
    const uint8_t *input;
    size_t length;
    int seat, count = 0;
    out += sprintf(out, "given=%" PRIu64 " repeated=%" PRIu64 " inputs=", frame->of.tick.given, frame->of.tick.repeated);
    while (cm_next_input(frame, &seat, &input, &length)) {
        out += sprintf(out, "%s%d:", count++ > 0 ? "," : "", seat);
        out = hex(out, input, length);
    }
}

static const char *show(cm_frame *frame, char *out) {
    const cm_welcome *welcome = &frame->of.welcome;
    out += sprintf(out, "tick=%" PRIu32 " ack=%" PRIu32 " missing=%" PRIu32 " ", frame->header.tick, frame->header.ack, frame->header.missing);
    switch (frame->kind) {
    case CM_WELCOME:
        sprintf(out, "seat=%d seats=%d mode=%d runs=%d tick_rate=%d input_delay=%d present=%" PRIu64 " input_bytes_max=%d hold_ms=%" PRIu32 " seed=%" PRIu64,
            welcome->seat, welcome->seats, welcome->mode, welcome->runs, welcome->tick_rate, welcome->input_delay, welcome->present,
            welcome->input_bytes_max, welcome->hold_ms, welcome->seed);
        return "welcome";
    case CM_TICK: show_tick(frame, out); return "tick";
    case CM_SEAT: sprintf(out, "seat=%d state=%d", frame->of.seat.seat, frame->of.seat.state); return "seat";
    case CM_DESYNC: sprintf(out, "minority=%" PRIu64 " hash=%" PRIu32, frame->of.desync.minority, frame->of.desync.hash); return "desync";
    case CM_PONG: hex(out + sprintf(out, "stamp="), frame->of.pong.data, frame->of.pong.length); return "pong";
    case CM_CLOCK: sprintf(out, "runs=%d seat=%d", frame->of.clock.runs, frame->of.clock.seat); return "clock";
    case CM_ENDED:
        out += sprintf(out, "reason=%d seats=%" PRIu64 " outcome=", frame->of.ended.reason, frame->of.ended.seats);
        hex(out, frame->of.ended.outcome.data, frame->of.ended.outcome.length);
        return "ended";
    case CM_WANTED: sprintf(out, "whole=%d", frame->of.wanted.whole); return "wanted";
    case CM_UPDATE: hex(out + sprintf(out, "update="), frame->of.update.data, frame->of.update.length); return "update";
    case CM_SNAPSHOT: hex(out + sprintf(out, "snapshot="), frame->of.snapshot.data, frame->of.snapshot.length); return "snapshot";
    default:
        out += sprintf(out, "code=%d text=", frame->of.error.code);
        hex(out, frame->of.error.text.data, frame->of.error.text.length);
        return "error";
    }
}

static void check_server(const uint8_t *data, size_t length, const char *name, const char *fields) {
    char found[4096];
    const char *kind;
    cm_frame frame;
    size_t part;
    if (cm_read(data, length, &frame) != (long)length) fail(name, "a frame", cm_text(cm_read(data, length, &frame)));
    kind = show(&frame, found);
    if (strcmp(kind, name) != 0 || strcmp(found, fields) != 0) fail(name, fields, found);
    for (part = 0; part < length; part++) {
        /* A buffer of just this size, so that the sanitizer sees what is read behind it. */
        uint8_t *copy = malloc(part + 1);
        memcpy(copy, data, part);
        if (cm_read(copy, part, &frame) != CM_MORE) fail(name, cm_text(CM_MORE), "something else");
        /* The same bytes as a frame that ends there. */
        if (part > 0 && length < 0x80) {
            copy[0] = (uint8_t)(part - 1);
            cm_read(copy, part, &frame);
        }
        free(copy);
    }
    checked[1]++;
}

int main(int count, char **arguments) {
    static char line[8192];
    static uint8_t data[4096];
    FILE *file = count == 2 ? fopen(arguments[1], "r") : NULL;
    cm_frame frame;
    if (!file) return 2;
    while (fgets(line, sizeof line, file)) {
        char *side = strtok(line, " \n"), *text, *name, *fields;
        size_t length;
        if (!side || *side == '#') continue;
        text = strtok(NULL, " \n");
        name = strtok(NULL, " \n");
        fields = strtok(NULL, "\n");
        length = from_hex(text, strlen(text), data);
        if (strcmp(side, "client") == 0) check_client(text, name, fields ? fields : "");
        if (strcmp(side, "server") == 0) check_server(data, length, name, fields);
        if (strcmp(side, "bad") == 0) {
            if (cm_read(data, length, &frame) >= 0) fail(name, "an error", "none");
            checked[2]++;
        }
    }
    fclose(file);
    printf("%d written, %d read, %d refused, %d failures\n", checked[0], checked[1], checked[2], failures);
    return failures > 0 || checked[0] < 8 || checked[1] < 8 || checked[2] < 8;
}
