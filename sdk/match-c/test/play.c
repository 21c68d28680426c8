/*
 * Plays a match whose stream of bytes is standard input and output: play TOKEN TICKS [CUT FILE]. Its input in each tick is the tick's lowest byte, and its
 * game a hash of all inputs. It tells the server that hash every 10 ticks, and at the end as what came of the game, and prints to standard error what it
 * saw. After the tick CUT it keeps its player in FILE and ends, as a program does whose connection is lost; where CUT is 0 it goes on with that player.
 */
#define CARILLON_MATCH_IMPLEMENTATION
#include "../carillon_match.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct { cm_player player; uint32_t hash, own, repeated; uint8_t last[64]; } game;

static void mix(uint32_t *hash, uint32_t value) { *hash = (*hash ^ value) * 0x01000193u; }

static void say(const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(1, bytes, length);
        if (written <= 0) exit(3);
        bytes += written;
        length -= (size_t)written;
    }
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void tick(game *all, cm_frame *frame, uint32_t last) {
    uint8_t out[CM_OUT_BYTES], held = (uint8_t)frame->header.tick, outcome[4];
    const uint8_t *input;
    size_t length;
    int seat, at;
    if (frame->header.tick > last) return;
    while (cm_next_input(frame, &seat, &input, &length)) all->last[seat] = length > 0 ? input[0] : 0;
    for (seat = 0; seat < all->player.welcome.seats; seat++) {
        if (frame->of.tick.repeated >> seat & 1) mix(&all->hash, 256u + (uint32_t)seat);
        mix(&all->hash, all->last[seat]);
    }
    all->own += (uint32_t)(frame->of.tick.given >> all->player.welcome.seat & 1);
    all->repeated += (uint32_t)(frame->of.tick.repeated >> all->player.welcome.seat & 1);
    say(out, cm_send(&all->player, now_ms(), &held, 1, out, sizeof out));
    if (frame->header.tick % 10 == 0) say(out, cm_write_hash(frame->header.tick, all->hash, out, sizeof out));
    if (frame->header.tick < last) return;
    for (at = 0; at < 4; at++) outcome[at] = (uint8_t)(all->hash >> (8 * at));
    say(out, cm_write_outcome(last, outcome, sizeof outcome, out, sizeof out));
}

/* What a frame means; whether the match is over. */
static int over(game *all, cm_frame *frame, uint32_t last) {
    if (frame->kind == CM_TICK) tick(all, frame, last);
    if (frame->kind == CM_DESYNC) fprintf(stderr, "desync ");
    if (frame->kind == CM_ERROR) fprintf(stderr, "error=%s ", cm_code(frame->of.error.code));
    if (frame->kind == CM_ENDED) {
        fprintf(stderr, "reason=%d outcome=", frame->of.ended.reason);
        for (size_t at = 0; at < frame->of.ended.outcome.length; at++) fprintf(stderr, "%02x", frame->of.ended.outcome.data[at]);
        fprintf(stderr, " ");
    }
    return frame->kind == CM_ENDED || frame->kind == CM_ERROR;
}

static void keep(game *all, const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    size_t done = !file ? 0 : *mode == 'r' ? fread(all, sizeof *all, 1, file) : fwrite(all, sizeof *all, 1, file);
    if (done != 1 || fclose(file) != 0) exit(4);
}

int main(int count, char **arguments) {
    static uint8_t buffer[2 * CM_IN_BYTES], out[CM_OUT_BYTES];
    static game all;
    size_t filled = 0, at;
    ssize_t came;
    uint32_t last, cut = 0;
    int is_over = 0;
    if (count != 3 && count != 5) return 2;
    last = (uint32_t)strtoul(arguments[2], NULL, 10);
    cm_begin(&all.player);
    if (count == 5) cut = (uint32_t)strtoul(arguments[3], NULL, 10);
    if (count == 5 && cut == 0) keep(&all, arguments[4], "rb");
    say(out, cm_join(&all.player, arguments[1], out, sizeof out));
    while (!is_over && (came = read(0, buffer + filled, sizeof buffer - filled)) > 0) {
        cm_frame frame;
        long used = 0;
        for (at = 0, filled += (size_t)came; !is_over && (used = cm_receive(&all.player, buffer + at, filled - at, &frame)) > 0; at += (size_t)used) {
            is_over = over(&all, &frame, last);
            if (cut > 0 && all.player.have >= cut) {
                keep(&all, arguments[4], "wb");
                return 0;
            }
        }
        if (used < 0) {
            fprintf(stderr, "%s\n", cm_text(used));
            return 1;
        }
        memmove(buffer, buffer + at, filled -= at);
    }
    fprintf(stderr, "ticks=%" PRIu32 " hash=%08" PRIx32 " own=%" PRIu32 " repeated=%" PRIu32 "\n", all.player.have, all.hash, all.own, all.repeated);
    return is_over ? 0 : 1;
}
