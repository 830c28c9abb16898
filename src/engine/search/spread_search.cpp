#include "engine/search/spread_search.h"

#include <algorithm>
#include <cstring>

namespace pgwarp
{

namespace
{

constexpr double large_cost = 8e6;  // float operations of one index that are worth all threads
constexpr std::size_t pieces_per_thread = 8;

double target_cost(const SpreadTarget& target, const SpreadSearch& search)
{
    if (!target.settings.mirror) return 0;
    return estimate_cost(target.settings, {search.queries.view(), &search.predicates}) *
           static_cast<double>(search.count);
}

void search_target(SpreadTarget& target, const SpreadSearch& search, const CancelToken* cancel, ThreadPool& pool)
{
    thread_local SearchAnswer answer;
    try {
        Mirror& mirror = *target.settings.mirror;
        const auto started = Clock::now();
        run_search(target.settings, {search.queries.view(), &search.predicates}, cancel, pool, answer);
        mirror.count_batch(search.count, static_cast<std::uint64_t>((Clock::now() - started).count()));
        target.counts = answer.counts;
        target.results = answer.results;
        if (target.settings.want_places) target.places = answer.places;
        target.resolved = answer.resolved;
        target.answer.last = cursor_behind(answer.results, answer.places, target.settings.after);
        target.answer.bound_width = answer.bound_width;
        target.answer.kind = answer.kind;
        const FilterOutcome filtered = filtered_of(answer, 0, search.count);
        target.answer.passing_rows = filtered.passing_rows;
        target.answer.filter_ways = filtered.ways;
        target.answer.on_cuda = mirror.on_cuda() ? 1 : 0;
        target.answer.status = SearchStatus::answered;
    } catch (const Cancelled&) {
        throw;
    } catch (...) {
        // The request for this index alone, which follows, gets the error, or frees memory.
        target.counts.assign(search.count, 0);
        target.results.clear();
        target.places.clear();
        target.answer.status = SearchStatus::alone;
    }
    answer.snapshot.reset();
}

}  // namespace

double SpreadSearch::cost() const
{
    double sum = 0;
    for (const SpreadTarget& target : targets) sum += target_cost(target, *this);
    return sum;
}

void run_spread_search(SpreadSearch& search, const CancelToken* cancel, ThreadPool& pool)
{
    const auto started = Clock::now();
    std::vector<SpreadTarget*> small;
    for (SpreadTarget& target : search.targets) {
        if (!target.settings.mirror) continue;
        if (target_cost(target, search) > large_cost) {
            search_target(target, search, cancel, pool);
        } else {
            small.push_back(&target);
        }
    }
    const std::size_t grain = std::max<std::size_t>(1, small.size() / (pieces_per_thread * pool.threads()));
    pool.parallel_for(small.size(), grain, [&](std::size_t begin, std::size_t end) {
        if (cancel != nullptr) cancel->check();
        for (std::size_t i = begin; i < end; ++i) search_target(*small[i], search, cancel, pool);
    });
    search.dispatched = Clock::now() - started;
}

std::vector<std::byte> spread_body(const SpreadSearch& search)
{
    const std::size_t answers = search.targets.size() * sizeof(IndexAnswer);
    const std::size_t counts = search.targets.size() * search.count * sizeof(std::uint32_t);
    std::size_t results = 0;
    std::size_t places = 0;
    for (const SpreadTarget& target : search.targets) {
        results += target.results.size() * sizeof(Result);
        places += target.places.size() * sizeof(std::uint64_t);
    }
    std::vector<std::byte> body(answers + (counts + 7) / 8 * 8 + results + places);
    std::byte* answer_at = body.data();
    std::byte* count_at = answer_at + answers;
    std::byte* result_at = count_at + (counts + 7) / 8 * 8;
    std::byte* place_at = result_at + results;
    const auto put = [](std::byte*& at, const void* from, std::size_t bytes) {
        if (bytes > 0) std::memcpy(at, from, bytes);
        at += bytes;
    };
    for (const SpreadTarget& target : search.targets) {
        put(answer_at, &target.answer, sizeof(IndexAnswer));
        if (target.counts.empty()) {
            count_at += search.count * sizeof(std::uint32_t);
        } else {
            put(count_at, target.counts.data(), search.count * sizeof(std::uint32_t));
        }
        put(result_at, target.results.data(), target.results.size() * sizeof(Result));
        put(place_at, target.places.data(), target.places.size() * sizeof(std::uint64_t));
    }
    return body;
}

}  // namespace pgwarp
