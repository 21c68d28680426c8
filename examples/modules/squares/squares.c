// Two squares chase each other, and the server decides where they are: a module for matches in the mode `authoritative`.
//
// An input is two bytes: -1, 0 or 1 for each direction. An update is the state as it is: both places, who is it, and the points. Who is it and
// touches the other has a point, and both start again; who has five points first has won.
#include "../include/carillon_hooks.h"

#define SEATS 2
#define FIELD 1000
#define SIZE 40
#define STEP 12
#define POINTS 5

// The whole state of a match. Its bytes are what is saved and what players are told: fixed sizes, no padding.
struct square {
    int16_t x, y;
};
static struct {
    struct square squares[SEATS];
    uint8_t it;
    uint8_t has_begun;
    uint8_t points[SEATS];
} game;

static uint8_t inputs[SEATS * (3 + 512)];

static int16_t clamped(int32_t value) { return value < 0 ? 0 : value > FIELD - SIZE ? FIELD - SIZE : (int16_t)value; }
static int32_t sign(uint8_t byte) { return byte == 0 ? 0 : byte < 128 ? 1 : -1; }
static int32_t distance(int16_t one, int16_t other) { return one < other ? other - one : one - other; }

// Both squares are somewhere, and not too near. The numbers follow from the match: played again, it is the same.
static void place(void) {
    do {
        for (int seat = 0; seat < SEATS; seat++) {
            game.squares[seat].x = (int16_t)((uint64_t)carillon_random() % (FIELD - SIZE));
            game.squares[seat].y = (int16_t)((uint64_t)carillon_random() % (FIELD - SIZE));
        }
    } while (distance(game.squares[0].x, game.squares[1].x) < 3 * SIZE);
}

static void move(struct square *square, const uint8_t *input, int length) {
    if (length < 2) return;
    square->x = clamped(square->x + STEP * sign(input[0]));
    square->y = clamped(square->y + STEP * sign(input[1]));
}

static int32_t touch(void) {
    return distance(game.squares[0].x, game.squares[1].x) < SIZE && distance(game.squares[0].y, game.squares[1].y) < SIZE;
}

CARILLON_HOOK(match_tick) {
    if (!game.has_begun) {
        game.has_begun = 1;
        place();
    }
    int size = carillon_field(CARILLON_INPUTS, inputs, sizeof inputs);
    for (int at = 0, seat = 0; seat < SEATS && at + 3 <= size; seat++) {
        int length = inputs[at + 1] | inputs[at + 2] << 8;
        move(&game.squares[seat], inputs + at + 3, length);
        at += 3 + length;
    }
    if (touch()) {
        game.points[game.it]++;
        carillon_count(0, 1);
        if (game.points[game.it] < POINTS) {
            game.it = 1 - game.it;
            place();
        }
    }
    carillon_output(CARILLON_OUT_UPDATE, &game, sizeof game);
    for (int seat = 0; seat < SEATS; seat++) {
        if (game.points[seat] >= POINTS) {
            carillon_output(CARILLON_OUT_OUTCOME, seat == 0 ? "{\"winner\":0}" : "{\"winner\":1}", 12);
            return CARILLON_OVER;
        }
    }
    return CARILLON_GOES_ON;
}

CARILLON_HOOK(match_save) {
    carillon_output(CARILLON_OUT_STATE, &game, sizeof game);
    return 0;
}

// Another version of this module may have saved it: what is of another size is not taken, and the match goes on with that version.
CARILLON_HOOK(match_load) {
    if (carillon_field(CARILLON_STATE, 0, 0) != sizeof game) return 1;
    carillon_field(CARILLON_STATE, &game, sizeof game);
    return 0;
}
