/* The limit: the graphExecutes of the bare SimPy loop (bare_simpy.py) in C, with the same draws, and nothing else.

   One event a core and one a client, the earliest found by looking at all of them; cores come first within an instant,
   then clients, each by number. No eviction, no priorities, no bandwidth, no registry, no loading, and no records: what
   it returns is how many graphExecutes have finished. */

#include <stdint.h>

#define MOST 64
#define NEVER INT64_MAX
#define REQUEST_BITS 24
enum { VIT, PREFILL, DECODE, STAGES };

typedef struct {
    int64_t first, count, draw; /* its table of times among all values; which draw of a step it uses */
} graph;

typedef struct {
    int64_t weight, core, guarded[STAGES];
    int64_t key[STAGES], width[STAGES], first_graph[STAGES], graphs[STAGES], steps[STAGES];
    int64_t think_key, think_first, think_count;
} client;

typedef struct {
    double start, finish;
    int64_t request, stage, step, k, solo, waits;
} state;

static const client *clients;
static const graph *graphs;
static const int64_t *values;

static uint64_t mixed(uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int64_t drawn(int64_t key, int64_t index, int64_t first, int64_t count) {
    if (count == 1) return values[first];
    return values[first + ((mixed((uint64_t)key ^ (uint64_t)index) >> 32) * (uint64_t)count >> 32)];
}

typedef struct {
    int64_t now, cores, many, slots;
    double clock;
    int64_t at[2 * MOST]; /* when something happens to a core, or to a client behind them */
    int64_t runs[MOST], queue[MOST][MOST], head[MOST], length[MOST];
    state of[MOST];
} world;

static void start(world *w, int64_t core, int64_t c) {
    w->runs[core] = c;
    w->at[core] = w->now + w->of[c].solo;
}

static void submit(world *w, int64_t c) {
    int64_t core = clients[c].core;
    if (w->at[core] == NEVER) start(w, core, c);
    else w->queue[core][(w->head[core] + w->length[core]++) % MOST] = c;
}

static void grant(world *w) {
    while (w->slots) {
        int64_t best = -1;
        for (int64_t c = 0; c < w->many; c++)
            if (w->of[c].waits && (best < 0 || w->of[c].start < w->of[best].start)) best = c;
        if (best < 0) return;
        w->of[best].waits = 0;
        w->slots--;
        w->clock = w->of[best].start;
        submit(w, best);
    }
}

static void execute(world *w, int64_t c) {
    const client *is = &clients[c];
    state *s = &w->of[c];
    const graph *g = &graphs[is->first_graph[s->stage] + s->k];
    int64_t index = (s->request << REQUEST_BITS) + s->step * is->width[s->stage] + g->draw;
    s->solo = drawn(is->key[s->stage], index, g->first, g->count);
    if (is->guarded[s->stage]) {
        s->start = w->clock > s->finish ? w->clock : s->finish;
        s->waits = 1;
        grant(w);
    } else submit(w, c);
}

static void think(world *w, int64_t c) {
    const client *is = &clients[c];
    w->at[w->cores + c] = w->now + drawn(is->think_key, w->of[c].request, is->think_first, is->think_count);
}

static void finish(world *w, int64_t core) {
    int64_t c = w->runs[core];
    const client *is = &clients[c];
    state *s = &w->of[c];
    w->at[core] = NEVER;
    if (w->length[core]) {
        start(w, core, w->queue[core][w->head[core]]);
        w->head[core] = (w->head[core] + 1) % MOST;
        w->length[core]--;
    }
    if (is->guarded[s->stage]) {
        s->finish = s->start + (double)s->solo / (double)is->weight;
        w->slots++;
        grant(w);
    }
    if (++s->k < is->graphs[s->stage]) return execute(w, c);
    s->k = 0;
    if (++s->step < is->steps[s->stage]) return execute(w, c);
    s->step = 0;
    if (++s->stage < STAGES) return execute(w, c);
    s->stage = 0;
    s->request++;
    think(w, c);
}

int64_t run(const client *all, const graph *each, const int64_t *table, int64_t many, int64_t cores, int64_t slots,
            int64_t until) {
    static _Thread_local world w;
    int64_t done = 0;
    clients = all, graphs = each, values = table;
    w = (world){.cores = cores, .many = many, .slots = slots};
    for (int64_t k = 0; k < cores; k++) w.at[k] = NEVER;
    for (int64_t c = 0; c < many; c++) think(&w, c);
    for (;;) {
        int64_t first = 0;
        for (int64_t k = 1; k < cores + many; k++)
            if (w.at[k] < w.at[first]) first = k;
        if (w.at[first] > until) return done;
        w.now = w.at[first];
        if (first < cores) {
            done++;
            finish(&w, first);
        } else {
            w.at[first] = NEVER;
            execute(&w, first - cores);
        }
    }
}
