// carillon:hooks@1 for C. docs/book/modules.md says what each does.
#ifndef CARILLON_HOOKS_H
#define CARILLON_HOOKS_H

#include <stdint.h>

#define CARILLON_IMPORT(name) __attribute__((import_module("carillon:hooks@1"), import_name(name)))
// A hook: a function of this name that returns a verdict.
#define CARILLON_HOOK(name) __attribute__((export_name(#name))) int32_t name(void)

enum carillon_field {
    CARILLON_TYPE = 0,
    CARILLON_FROM = 1,
    CARILLON_TO = 2,
    CARILLON_ID = 3,
    CARILLON_PAYLOAD = 4,
    CARILLON_BODY = 5,
    CARILLON_AUDIENCE = 6,
    CARILLON_PRIORITY = 7,
    CARILLON_COLLAPSE_KEY = 8,
    CARILLON_CONFIG = 9,
    CARILLON_INPUTS = 10,
    CARILLON_STATE = 11,
    CARILLON_MATCH = 12,
    CARILLON_ADDRESS = 13,
    CARILLON_TRANSPORT = 14,
    CARILLON_TLS = 15,
    CARILLON_MECHANISM = 16,
    CARILLON_SOFTWARE = 17,
    CARILLON_DEVICE = 18,
    CARILLON_AGENT = 19,
    CARILLON_REASON = 20,
    CARILLON_TITLE = 21,
    CARILLON_CHANNEL = 22,
    CARILLON_STATE_OF = 23,
    CARILLON_ACKNOWLEDGED_BY = 24,
    CARILLON_MEMBERS = 25,
    CARILLON_OCCUPANT = 26,
};

enum carillon_output {
    CARILLON_OUT_TEXT = 0,
    CARILLON_OUT_CONDITION = 1,
    CARILLON_OUT_BODY = 2,
    CARILLON_OUT_PAYLOAD = 3,
    CARILLON_OUT_UPDATE = 4,
    CARILLON_OUT_UPDATE_OF_SEAT = 5,
    CARILLON_OUT_STATE = 6,
    CARILLON_OUT_OUTCOME = 7,
    CARILLON_OUT_TITLE = 8,
};

// authorise passes or rejects; opened, closed and event pass.
enum carillon_verdict { CARILLON_PASS = 0, CARILLON_DROP = 1, CARILLON_REJECT = 2, CARILLON_REPLACE = 3 };

// What match_tick returns.
enum carillon_match { CARILLON_GOES_ON = 0, CARILLON_OVER = 1 };

// The field CARILLON_MATCH.
struct carillon_match_info {
    uint32_t tick;
    uint8_t seats;
    uint8_t tick_rate;
    uint16_t reserved;
    uint64_t seed;
};

// What CARILLON_INPUTS has for each seat, in their order: this byte, the length of the input in two bytes (little-endian), the input.
enum carillon_seat_input { CARILLON_NONE = 0, CARILLON_GIVEN = 1, CARILLON_REPEATED = 2, CARILLON_LEFT = 3 };

// Copies at most `size` bytes of a field to `at`. Returns how long the field is, or -1 if there is none.
CARILLON_IMPORT("field") int32_t carillon_field(int32_t field, void *at, int32_t size);
// What belongs to the verdict.
CARILLON_IMPORT("output") void carillon_output(int32_t kind, const void *at, int32_t size);
// A line for the operator.
CARILLON_IMPORT("log") void carillon_log(const void *at, int32_t size);
// Adds to a counter, 0 to 7.
CARILLON_IMPORT("count") void carillon_count(int32_t counter, int32_t by);
// Milliseconds since the Unix epoch.
CARILLON_IMPORT("now") int64_t carillon_now(void);
CARILLON_IMPORT("random") int64_t carillon_random(void);

#endif
