#include "postgres/executor/partition_search.h"

#include <cmath>

#include "postgres/am/element_type.h"
#include "postgres/am/index_options.h"
#include "postgres/client/row_pieces.h"
#include "postgres/executor/knn_filter.h"
#include "postgres/scan/filtered_scan.h"
#include "postgres/scan/operator_distance.h"
#include "postgres/scan/search_limits.h"
#include "postgres/scan/search_reply.h"
#include "postgres/scan/search_start.h"

extern "C" {
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/float.h"
}

namespace pgwarp
{

PartitionSearch* make_partition_search(MergeAppendState* merge, EState* executor)
{
    auto* search = static_cast<PartitionSearch*>(palloc0(sizeof(PartitionSearch)));
    search->executor = executor;
    search->merge = merge;
    search->scans = static_cast<PartitionScan*>(palloc0(sizeof(PartitionScan) * Max(1, merge->ms_nplans)));
    search->scan_of_child =
        static_cast<const PartitionScan**>(palloc0(sizeof(PartitionScan*) * Max(1, merge->ms_nplans)));
    search->context = AllocSetContextCreate(executor->es_query_cxt, "KnnPartitions", ALLOCSET_DEFAULT_SIZES);
    return search;
}

void forget_partition_answers(PartitionSearch* search)
{
    if (search->query.count == 0) return;
    for (uint32 i = 0; i < search->count; ++i) search->scans[i].answer = nullptr;
    search->query = {};
    MemoryContextReset(search->context);
}

namespace
{

// Returns the scan of a partition, below nodes that pass its rows on; null for any other plan.
const PlanState* scan_of_partition(const PlanState* node)
{
    while (node != nullptr && !IsA(node, IndexScanState)) {
        if (IsA(node, ResultState)) {
            node = outerPlanState(node);
        } else if (is_knn_filter(node)) {
            node = scan_below_knn_filter(node);
        } else {
            return nullptr;
        }
    }
    return node;
}

// The answers must fit into work_mem together. A scan with too short an answer searches by itself; few of many
// partitions do, because few hold most of the rows.
void limit_answers(IndexSearch* searches, uint32 count)
{
    const uint64 room = uint64{1024} * static_cast<uint64>(work_mem) / (sizeof(Result) * Max(1U, count));
    for (uint32 i = 0; i < count; ++i) {
        searches[i].wanted = static_cast<uint32>(Min(uint64{searches[i].wanted}, Max(room, uint64{1})));
    }
}

// Whether two scans are ordered by the same distance: equal operator and query.
bool order_alike(const IndexScanState* a, const IndexScanState* b)
{
    Node* one = static_cast<Node*>(linitial(castNode(IndexScan, a->ss.ps.plan)->indexorderbyorig));
    Node* other = static_cast<Node*>(linitial(castNode(IndexScan, b->ss.ps.plan)->indexorderbyorig));
    if (!IsA(one, OpExpr) || !IsA(other, OpExpr)) return false;
    const auto* left = castNode(OpExpr, one);
    const auto* right = castNode(OpExpr, other);
    return left->opno == right->opno && equal(lsecond(left->args), lsecond(right->args));
}

// Whether two scans have the same keys on the same columns of their indexes: then an answer to the one's query and
// predicate answers the other's.
bool keyed_alike(const IndexScanState* a, const IndexScanState* b)
{
    const auto* one = castNode(IndexScan, a->ss.ps.plan);
    const auto* other = castNode(IndexScan, b->ss.ps.plan);
    if (one->indexqual == NIL && other->indexqual == NIL) return true;
    return equal(one->indexqual, other->indexqual) && equal(one->indexorderby, other->indexorderby);
}

// Returns the scans that this execution of the Merge Append can begin, after run-time pruning. Serializable
// transactions count them as read from now on.
IndexSearch* collect_searches(PartitionSearch* search, uint32** numbers, uint32* count)
{
    auto* searches = static_cast<IndexSearch*>(palloc0(sizeof(IndexSearch) * search->count));
    *numbers = static_cast<uint32*>(palloc(sizeof(uint32) * search->count));
    *count = 0;
    for (uint32 i = 0; i < search->count; ++i) {
        const PartitionScan& scan = search->scans[i];
        if (!bms_is_member(scan.plan, search->merge->ms_valid_subplans)) continue;
        Relation index = scan.scan->iss_RelationDesc;
        PredicateLockRelation(index, search->executor->es_snapshot);
        searches[*count] = {index, first_wanted(scan.hint), nullptr};
        (*numbers)[(*count)++] = i;
    }
    limit_answers(searches, *count);
    return searches;
}

void give_answer(PartitionSearch* search, uint32 number, const BatchAnswer* answer)
{
    search->scans[number].answer = answer;
    if (answer != nullptr && answer->part != nullptr) note_keyed_search(&search->keyed, answer->part->reply);
}

// Search for all scans with one request.
void fetch_answers(PartitionSearch* search, const ScanQuery& query)
{
    forget_partition_answers(search);
    MemoryContext outer = MemoryContextSwitchTo(search->context);
    search->query = copy_rows(query.row);
    auto* words = static_cast<uint64*>(palloc(sizeof(uint64) * Max(1U, query.predicate.count)));
    if (query.predicate.count > 0) memcpy(words, query.predicate.words, sizeof(uint64) * query.predicate.count);
    search->predicate = {words, query.predicate.count};
    search->metric = query.metric;
    search->dimensions = static_cast<uint32>(query.row.width);
    search->within = query.within;
    uint32* numbers = nullptr;
    uint32 count = 0;
    IndexSearch* searches = collect_searches(search, &numbers, &count);
    if (count > 1) {
        keep_begun_batch();
        // All partitions have the same conditions.
        const bool filtered = search->scans[numbers[0]].hint.filter != nullptr;
        search_indexes({filtered ? prepare_normal_search : prepare_rungs, false, query.within}, searches, count,
                       query.metric, search->query, predicate_of_all(words, query.predicate.count), &search->counts);
        for (uint32 i = 0; i < count; ++i) give_answer(search, numbers[i], searches[i].answers);
    }
    MemoryContextSwitchTo(outer);
}

}  // namespace

void add_partition_scan(PlanState* node, LimitHint* hint)
{
    PartitionSearch* search = hint->partitions;
    MergeAppendState* merge = search->merge;
    int plan = search->count > 0 ? search->scans[search->count - 1].plan + 1 : 0;
    while (plan < merge->ms_nplans && scan_of_partition(merge->mergeplans[plan]) != node) ++plan;
    const auto* scan = castNode(IndexScanState, node);
    const auto* first = search->count > 0 ? search->scans[0].scan : scan;
    const bool fits = plan < merge->ms_nplans && order_alike(first, scan) && keyed_alike(first, scan);
    if (!fits) {
        hint->partitions = nullptr;
        return;
    }
    hint->partition = search->count;
    PartitionScan* added = &search->scans[search->count++];
    *added = {castNode(IndexScanState, node), plan, *hint, nullptr};
    search->scan_of_child[plan] = added;
}

bool partition_bound(const PartitionSearch* search, int child, double* bound)
{
    const PartitionScan* scan = search->scan_of_child[child];
    if (scan == nullptr || scan->answer == nullptr) return false;
    const BatchAnswer& answer = *scan->answer;
    *bound = get_float8_infinity();
    if (answer.part == nullptr) return true;
    // Without results, or if rows may have been missed, later searches may find nearer rows.
    const SearchReply& reply = answer.part->reply;
    if (answer.count == 0 || !is_complete(scan->scan->iss_RelationDesc, answer.part->request.settings)) return false;
    if (reply.kind == ResultKind::approximate) return false;
    Relation index = scan->scan->iss_RelationDesc;
    const bool rounds = index_arithmetic(index) != Arithmetic::canonical;
    if (rounds && bounds_need_norms(search->metric)) return false;
    const Float32Distance rounded(search->metric, summed_terms(index, search->metric, search->query), 0, {});
    for (uint32 i = 0; i < answer.count; ++i) {
        const DistanceBounds found = bound_distance(answer.results[i], reply.kind, reply.bound_width);
        *bound = Min(*bound, rounds ? rounded.bound(found).lower : found.lower);
    }
    *bound -= distance_rounding * std::fabs(*bound);
    return !std::isnan(*bound);
}

bool partition_shape(const PartitionSearch* search, uint32 number, Metric* metric, uint32* dimensions)
{
    if (search == nullptr || search->scans[number].answer == nullptr) return false;
    *metric = search->metric;
    *dimensions = search->dimensions;
    return true;
}

const BatchAnswer* find_partition_answer(PartitionSearch* search, uint32 number, const ScanQuery& query)
{
    const bool known = search->query.count > 0;
    const bool same = known && search->metric == query.metric && same_rows(search->query, query.row) &&
                      search->predicate == query.predicate;
    // Indexes of several metrics have several queries: scans with another query than the first search by themselves.
    if (!same && known) return nullptr;
    if (!same) fetch_answers(search, query);
    if (search->within < query.within) return nullptr;
    const BatchAnswer* answer = search->scans[number].answer;
    if (answer != nullptr) search->hits++;
    return answer;
}

}  // namespace pgwarp
