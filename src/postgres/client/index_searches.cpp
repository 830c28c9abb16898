#include "postgres/client/index_searches.h"

#include "postgres/client/connection.h"
#include "postgres/client/remembered_indexes.h"
#include "postgres/client/row_pieces.h"
#include "postgres/settings.h"

namespace pgwarp
{

namespace
{

constexpr uint64 most_bytes = 1U << 20;        // of answers in a reply
constexpr uint64 most_query_bytes = 1U << 19;  // in a request; the rest is for indexes

// One request being put together.
struct IndexGroup {
    SearchIndexesRequest request;
    IndexTarget* targets;
    uint32* members;  // positions among the searches
    BatchPart** parts;
    uint32 count;
    uint64 reply_bytes;
};

uint64 answer_bytes(const SearchRequest& request, uint32 query_count)
{
    const uint64 result_bytes = sizeof(Result) + (request.want_places != 0 ? sizeof(uint64) : 0);
    return sizeof(IndexAnswer) + uint64{query_count} * (sizeof(uint32) + result_bytes * request.k);
}

// Describe the search of one index. Returns null when the index is left out of the request; if it is empty, its answers
// are set to empty ones.
BatchPart* plan_part(const SearchStyle& style, IndexSearch* search, Metric metric, const RowView& queries)
{
    const IndexState state = read_index_state(search->index);
    const IndexShape& shape = state.meta.shape;
    if (!fits_shape(queries, shape) || static_cast<Metric>(shape.metric) != metric) return nullptr;
    if (index_is_empty(state)) {
        search->answers = static_cast<BatchAnswer*>(palloc0(sizeof(BatchAnswer) * queries.count));
        return nullptr;
    }
    auto* part = static_cast<BatchPart*>(palloc0(sizeof(BatchPart)));
    prepare_in_style(style, search->index, state, search->wanted, &part->request);
    describe_queries(queries, &part->request);
    address_request(search->index, state, &part->request);
    return part;
}

void add_member(IndexGroup* group, uint32 member, BatchPart* part)
{
    const SearchRequest& request = part->request;
    IndexTarget& target = group->targets[group->count];
    target.key = request.key;
    memcpy(target.delta_end, request.delta_end, sizeof(target.delta_end));
    target.tombstone_version = request.tombstone_version;
    target.effort = request.effort;
    target.k = request.k;
    target.earlier_count = request.earlier_count;
    target.reserved = 0;
    memcpy(target.earlier, request.earlier, sizeof(target.earlier));
    target.want_places = request.want_places;
    group->members[group->count] = member;
    group->parts[group->count] = part;
    group->count++;
    group->reply_bytes += answer_bytes(request, request.query_count);
}

// Whether the reply's length agrees with its counts.
bool is_whole(const EngineReply& reply, const IndexGroup& group)
{
    const uint64 pairs = uint64{group.count} * group.request.query_count;
    const uint64 results_at =
        sizeof(SearchIndexesReply) + sizeof(IndexAnswer) * uint64{group.count} + MAXALIGN(sizeof(uint32) * pairs);
    if (reply.payload_bytes < results_at) return false;
    SearchIndexesReply head;
    memcpy(static_cast<void*>(&head), reply.payload, sizeof(head));
    if (head.index_count != group.count || head.query_count != group.request.query_count) return false;
    const auto* counts = reinterpret_cast<const uint32*>(reply.payload + sizeof(SearchIndexesReply) +
                                                         sizeof(IndexAnswer) * uint64{group.count});
    uint64 result_bytes = 0;
    for (uint64 i = 0; i < pairs; ++i) {
        const bool has_places = group.targets[i / head.query_count].want_places != 0;
        result_bytes += (sizeof(Result) + (has_places ? sizeof(uint64) : 0)) * counts[i];
    }
    return reply.payload_bytes == results_at + result_bytes;
}

void note_answer(const IndexAnswer& answer, const SearchIndexesReply& head, BatchPart* part)
{
    part->reply.has_places = part->request.want_places;
    part->reply.engine_ns = head.engine_ns;
    part->reply.queue_ns = head.queue_ns;
    part->reply.query_count = head.query_count;
    part->reply.batch_width = head.query_count;
    part->reply.bound_width = answer.bound_width;
    part->reply.last = answer.last;
    part->reply.status = answer.status;
    part->reply.kind = answer.kind;
    part->reply.on_cuda = answer.on_cuda;
    part->reply.passing_rows = answer.passing_rows;
    part->reply.filter_ways = answer.filter_ways;
}

// Copy a reply's results, and assign each index its own.
void take_answers(const EngineReply& reply, const IndexGroup& group, IndexSearch* searches, IndexSearchCounts* counts)
{
    char* payload = static_cast<char*>(palloc(reply.payload_bytes));
    memcpy(payload, reply.payload, reply.payload_bytes);
    const auto* head = reinterpret_cast<const SearchIndexesReply*>(payload);
    const auto* answers = reinterpret_cast<const IndexAnswer*>(head + 1);
    const auto* found = reinterpret_cast<const uint32*>(answers + group.count);
    const uint32 queries = head->query_count;
    const uint64 pairs = uint64{group.count} * queries;
    auto* results = reinterpret_cast<Result*>(
        payload + MAXALIGN(reinterpret_cast<const char*>(found) - payload + sizeof(uint32) * pairs));
    uint64 total = 0;
    for (uint64 i = 0; i < pairs; ++i) total += found[i];
    const auto* places = reinterpret_cast<const uint64*>(results + total);
    auto* all = static_cast<BatchAnswer*>(palloc(sizeof(BatchAnswer) * pairs));
    for (uint32 i = 0; i < group.count; ++i) {
        const bool answered = answers[i].status == SearchStatus::answered;
        if (answered) {
            note_answer(answers[i], *head, group.parts[i]);
            searches[group.members[i]].answers = all + uint64{i} * queries;
            counts->searches += queries;
            counts->on_cuda = counts->on_cuda || answers[i].on_cuda != 0;
            note_index_use(searches[group.members[i]].index);
        }
        for (uint32 q = 0; q < queries; ++q) {
            const uint64 at = uint64{i} * queries + q;
            const bool has_places = group.targets[i].want_places != 0;
            all[at] = {group.parts[i], results, has_places ? places : nullptr, found[at]};
            results += found[at];
            if (has_places) places += found[at];
        }
    }
    counts->settings = head->resolved;
}

// Send one request. Returns false when no index got answers.
bool send_group(const IndexGroup& group, const RowView& queries, const SearchPredicates& predicates,
                IndexSearch* searches, IndexSearchCounts* counts)
{
    RequestPiece pieces[2 + most_query_pieces] = {
        {&group.request, sizeof(group.request)},
        {group.targets, static_cast<uint32>(sizeof(IndexTarget) * group.count)},
    };
    const int count = 2 + query_pieces(queries, predicates, pieces + 2);
    open_engine();
    const RequestResult result = try_request(MessageType::search_indexes, pieces, count);
    if (result.outcome != RequestOutcome::replied || !is_whole(result.reply, group)) return false;
    SearchIndexesReply head;
    memcpy(static_cast<void*>(&head), result.reply.payload, sizeof(head));
    counts->requests++;
    counts->engine_ns += head.engine_ns;
    take_answers(result.reply, group, searches, counts);
    return true;
}

bool same_settings(const ParameterList& a, const ParameterList& b)
{
    return a.count == b.count && memcmp(a.items, b.items, sizeof(Parameter) * a.count) == 0;
}

// Move the parts that may share one request from `parts` to `group`, up to the limits of bytes.
void gather(BatchPart** parts, uint32 count, uint64 query_bytes, IndexGroup* group)
{
    const uint64 most_targets = (max_payload - sizeof(SearchIndexesRequest) - query_bytes) / sizeof(IndexTarget);
    group->count = 0;
    group->reply_bytes = 0;
    for (uint32 i = 0; i < count; ++i) {
        if (parts[i] == nullptr) continue;
        const SearchRequest& request = parts[i]->request;
        if (group->count == 0) group->request.settings = request.settings;
        const bool fits = group->count < most_targets &&
                          group->reply_bytes + answer_bytes(request, request.query_count) <= most_bytes &&
                          same_settings(group->request.settings, request.settings);
        if (!fits && group->count > 0) continue;
        add_member(group, i, parts[i]);
        parts[i] = nullptr;
        if (!fits) return;  // too large even alone: the engine refuses it, and the scan's own search proceeds in pieces
    }
}

}  // namespace

void search_indexes(const SearchStyle& style, IndexSearch* searches, uint32 count, Metric metric,
                    const RowView& queries, const SearchPredicates& predicates, IndexSearchCounts* counts)
{
    const RowBlock block = block_of(queries);
    const uint64 query_bytes = block.bytes() + predicates.form.bytes(block.count);
    auto** parts = static_cast<BatchPart**>(palloc0(sizeof(BatchPart*) * Max(1U, count)));
    uint32 left = 0;
    for (uint32 i = 0; i < count; ++i) {
        searches[i].answers = nullptr;
        if (query_bytes > most_query_bytes) continue;
        parts[i] = plan_part(style, &searches[i], metric, queries);
        if (parts[i] != nullptr) left++;
    }
    IndexGroup group = {};
    group.request.query_count = block.count;
    group.request.dimensions = block.width;
    group.request.form = block.form;
    group.request.predicates = predicates.form;
    group.request.fault = static_cast<uint16>(setting_fault);
    group.targets = static_cast<IndexTarget*>(palloc(sizeof(IndexTarget) * Max(1U, left)));
    group.members = static_cast<uint32*>(palloc(sizeof(uint32) * Max(1U, left)));
    group.parts = static_cast<BatchPart**>(palloc(sizeof(BatchPart*) * Max(1U, left)));
    while (left > 0) {
        gather(parts, count, query_bytes, &group);
        left -= group.count;
        group.request.index_count = group.count;
        if (!send_group(group, queries, predicates, searches, counts)) break;
    }
}

}  // namespace pgwarp
