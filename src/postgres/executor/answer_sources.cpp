#include "postgres/executor/answer_sources.h"

#include "postgres/executor/answer_cache.h"
#include "postgres/executor/partition_search.h"

namespace pgwarp
{

namespace
{

bool join_shape(const EState* executor, Relation index, Metric* metric, uint32* dimensions)
{
    const AnswerCache* cache = find_answer_cache(executor, index);
    if (cache == nullptr) return false;
    *metric = cache->metric;
    *dimensions = cache->dimensions;
    return true;
}

JoinAnswers* find_join(const EState* executor, Relation index, const ScanQuery& query)
{
    return find_answering_cache(executor, index, query);
}

const BatchAnswer* take(JoinAnswers* answers, const AnsweredScan& scan, uint32* wanted)
{
    auto* cache = static_cast<AnswerCache*>(answers);
    const BatchAnswer* answer = take_cached_answer(cache, scan);
    *wanted = cache->wanted;
    return answer;
}

const BatchAnswer* deepen(JoinAnswers* answers, const AnsweredScan& scan, const ScanQuery& query, uint32 wanted)
{
    auto* cache = static_cast<AnswerCache*>(answers);
    return answers_query(cache, query) ? deepen_cached_answer(cache, scan, wanted) : nullptr;
}

}  // namespace

void init_answer_sources()
{
    prefetched_answers = {join_shape, partition_shape, note_keys_of_scan,    find_join,
                          take,       deepen,          find_partition_answer};
}

}  // namespace pgwarp
