#include "postgres/client/loader.h"

#include "postgres/client/delta_cost.h"
#include "postgres/client/delta_progress.h"
#include "postgres/client/delta_push.h"
#include "postgres/client/mirror_load.h"
#include "postgres/client/quarantine.h"
#include "postgres/client/remembered_indexes.h"
#include "postgres/client/tid_push.h"
#include "postgres/settings.h"

namespace pgwarp
{

namespace
{

constexpr int most_rounds = 1000;  // of search and load, for one answer
constexpr int most_load_deaths = 3;
constexpr int most_unsent = 5;

// The state of one search.
struct SearchRun {
    Relation index;
    IndexState state;
    SearchRequest* request;
    RowView queries;
    SearchPredicates predicates;
    int rounds;
    int unsent;
    int search_deaths;
    int load_deaths;
};

bool send_tids_again(const void* tids)
{
    return send_tids(*static_cast<const SearchTids*>(tids)) == LoadOutcome::done;
}

RequestResult send_search(SearchRun* run)
{
    SearchRequest* request = run->request;
    address_request(run->index, run->state, request);
    RequestPiece pieces[most_search_pieces];
    const int count = search_pieces(request, run->queries, run->predicates, pieces);
    if (run->search_deaths == 0) return try_request(MessageType::search, pieces, count);
    RequestOptions options;
    if (run->predicates.tids != nullptr) {
        options.equip = send_tids_again;
        options.equip_state = run->predicates.tids;
    }
    return try_request_alone(MessageType::search, pieces, count, options);
}

// The engine ended during this search. The first time another session's request may be the cause; the second time this
// search ran alone.
void note_search_death(SearchRun* run)
{
    if (++run->search_deaths < 2) return;
    quarantine_index(run->request->key);
    ereport(ERROR,
            (errcode(ERRCODE_SYSTEM_ERROR),
             errmsg("pgwarp-engine ended twice during a search of index \"%s\"", RelationGetRelationName(run->index)),
             errhint("The server's log tells why. For a while, searches of this index are answered by the CPU "
                     "device; REINDEX the index if it goes on.")));
}

void note_load_death(SearchRun* run)
{
    if (++run->load_deaths < most_load_deaths) return;
    ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR),
                    errmsg("pgwarp-engine ended repeatedly while index \"%s\" was loaded",
                           RelationGetRelationName(run->index)),
                    errhint("The server's log tells why; the engine may lack memory (pgwarp.engine_memory).")));
}

void note_unsent(SearchRun* run)
{
    if (++run->unsent == most_unsent) raise_engine_lost();
}

[[noreturn]] void raise_still_loading(const SearchRun* run)
{
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("index \"%s\" is still being loaded", RelationGetRelationName(run->index)),
                    errdetail("The search waited for %d ms.", setting_load_wait_ms),
                    errhint("Raise pgwarp.load_wait, or load indexes ahead with pgwarp_prewarm().")));
}

void note_load(SearchRun* run, LoadOutcome outcome)
{
    switch (outcome) {
        case LoadOutcome::done:
            break;
        case LoadOutcome::again:
            break;
        case LoadOutcome::still_loading:
            raise_still_loading(run);
        case LoadOutcome::unsent:
            note_unsent(run);
            break;
        case LoadOutcome::lost:
            note_load_death(run);
            break;
    }
}

// Name the index in errors of its load: the engine knows no names.
void add_load_context(void* index)
{
    errcontext("loading index \"%s\" into pgwarp-engine", RelationGetRelationName(static_cast<Relation>(index)));
}

// Send the arrays, delta or tombstones that the mirror lacks.
void supply(SearchRun* run, const SearchReply& reply)
{
    ErrorContextCallback context = {error_context_stack, add_load_context, run->index};
    error_context_stack = &context;
    MemoryContext loading = AllocSetContextCreate(CurrentMemoryContext, "pgwarp load", ALLOCSET_DEFAULT_SIZES);
    MemoryContext outer = MemoryContextSwitchTo(loading);
    const DirectoryState now = read_directory_state(run->index);  // a newer state is valid for this snapshot too
    const bool same = run->state.meta.generation == now.meta.generation;
    run->state = now;
    switch (reply.status) {
        case SearchStatus::need_load:
            note_load(run, load_whole_mirror(run->index, now));
            break;
        case SearchStatus::need_delta:
            if (same) note_load(run, send_delta(run->index, now, reply.have_delta_end));
            break;
        case SearchStatus::need_tombstones:
            if (same) note_load(run, send_tombstones(run->index, now));
            break;
        case SearchStatus::need_tids:
            note_load(run, send_tids(*run->predicates.tids));
            break;
        case SearchStatus::still_loading:
            raise_still_loading(run);
        case SearchStatus::answered:
        case SearchStatus::alone:
            break;
    }
    MemoryContextSwitchTo(outer);
    MemoryContextDelete(loading);
    error_context_stack = context.previous;
}

}  // namespace

void address_request(Relation index, const IndexState& state, SearchRequest* request)
{
    request->key = mirror_key(index, state.meta);
    memcpy(request->delta_end, state.delta_end, sizeof(request->delta_end));
    request->tombstone_version = state.meta.tombstone_version;
}

void begin_search(Relation index, const IndexState& state, SearchRequest* request, const RowView& queries,
                  RequestAhead* ahead, const SearchPredicates& predicates)
{
    address_request(index, state, request);
    RequestPiece pieces[most_search_pieces];
    send_ahead(MessageType::search, pieces, search_pieces(request, queries, predicates, pieces), ahead);
}

bool finish_search(RequestAhead* ahead, EngineReply* reply)
{
    const RequestResult result = receive_ahead(ahead);
    // A refused search is sent again by engine_search(), which reports the refusal.
    if (result.outcome != RequestOutcome::replied || result.reply.payload_bytes < sizeof(SearchReply)) return false;
    SearchReply header;
    memcpy(static_cast<void*>(&header), result.reply.payload, sizeof(header));
    *reply = result.reply;
    return header.status == SearchStatus::answered;
}

EngineReply engine_search(Relation index, const IndexState& state, SearchRequest* request, const RowView& queries,
                          const SearchPredicates& predicates)
{
    SearchRun run = {index, state, request, queries, predicates, 0, 0, 0, 0};
    while (run.rounds++ < most_rounds) {
        CHECK_FOR_INTERRUPTS();
        open_engine();
        if (run.rounds == 1) {
            push_delta(index, state);
            open_engine();  // the engine may have ended just now
        }
        const RequestResult result = send_search(&run);
        if (result.outcome == RequestOutcome::refused) raise_refusal(result);
        if (result.outcome == RequestOutcome::lost) note_search_death(&run);
        if (result.outcome == RequestOutcome::unsent) note_unsent(&run);
        if (result.outcome != RequestOutcome::replied) continue;
        SearchReply reply;
        if (result.reply.payload_bytes < sizeof(reply)) raise_engine_lost();
        memcpy(static_cast<void*>(&reply), result.reply.payload, sizeof(reply));
        if (reply.status == SearchStatus::answered) {
            note_index_use(index);
            note_delta_cost(index, state.meta, state.delta_end, reply.delta_cost);
            note_delta_progress(request->key, reply.have_delta_end);
            return result.reply;
        }
        supply(&run, reply);
    }
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("pgwarp-engine keeps forgetting index \"%s\"", RelationGetRelationName(index)),
                    errhint("Its memory may be too small for the indexes in use: raise pgwarp.engine_memory.")));
}

}  // namespace pgwarp
