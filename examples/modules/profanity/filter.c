// Masks words in the bodies of messages with asterisks. Its configuration is the words, in lower case, separated by commas.
#include "../include/carillon_hooks.h"

#define WORDS_MAX 4096
#define BODY_MAX 65536

static char words[WORDS_MAX];
static char body[BODY_MAX];

static char lower(char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

static int is_letter(char c) {
    c = lower(c);
    // Bytes above 127 are parts of letters, too.
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c > 127;
}

// Whether the word from `at` to `end` is one of the list.
static int is_listed(const char *at, const char *end, const char *list, const char *list_end) {
    while (list < list_end) {
        const char *word = at;
        while (word < end && list < list_end && *list == lower(*word)) {
            word++;
            list++;
        }
        if (word == end && (list == list_end || *list == ',')) return 1;
        while (list < list_end && *list != ',') list++;
        list++;
    }
    return 0;
}

static int32_t filter(void) {
    int32_t listed = carillon_field(CARILLON_CONFIG, words, WORDS_MAX);
    int32_t size = carillon_field(CARILLON_BODY, body, BODY_MAX);
    if (listed <= 0 || size <= 0 || listed > WORDS_MAX || size > BODY_MAX) return CARILLON_PASS;
    int32_t masked = 0;
    for (char *at = body; at < body + size;) {
        char *end = at;
        while (end < body + size && is_letter(*end)) end++;
        if (end > at && is_listed(at, end, words, words + listed)) {
            while (at < end) *at++ = '*';
            masked++;
        }
        at = end + 1;
    }
    if (masked == 0) return CARILLON_PASS;
    carillon_count(0, masked);
    carillon_output(CARILLON_OUT_BODY, body, size);
    return CARILLON_REPLACE;
}

CARILLON_HOOK(submit_message) { return filter(); }
CARILLON_HOOK(room_message) { return filter(); }
