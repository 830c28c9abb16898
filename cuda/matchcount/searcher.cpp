// The searcher of text on the device. Few queries stay with the host: very long ones, those whose results may lie among
// very long texts, and those with very many results of one distance.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "device/error.h"
#include "device/searcher.h"
#include "device/wait.h"
#include "matchcount/host_scan.h"
#include "matchcount/text_mirror.h"
#include "matchcount/text_queries.h"
#include "matchcount/text_search.h"
#include "matchcount/text_session.h"
#include "methods/arrays.h"
#include "methods/device_wait.h"
#include "methods/matchcount/one_round.h"
#include "methods/rows/stored_lists.h"
#include "protocol/search_bound.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t most_queries = 4096;                  // of a chunk
constexpr std::size_t most_results = std::size_t{4} << 20;  // of a chunk
constexpr std::size_t most_chunk_bytes = std::size_t{256} << 20;
constexpr std::size_t most_written_in_place = 4096;  // results that kernels write to page-locked memory

std::uint32_t length_of(const SearchBatch& batch, std::uint32_t query)
{
    return view_text(batch.lists.list(query)).length;
}

bool is_one_round(const SearchBatch& batch)
{
    return batch.settings.get(matchcount_one_round, 0) != 0;
}

// Returns the least key (text_view.h) of a result behind `after`. Between two distances, all rows of the smaller one
// are before it.
std::uint64_t first_key_behind(const RowResult& after)
{
    constexpr double most = 1U << 31;  // no distance reaches it
    if (after.distance < 0) return 0;
    const double distance = std::ceil(std::min(after.distance, most));
    const std::uint64_t key = static_cast<std::uint64_t>(distance) << 32;
    return distance == after.distance ? (key | after.row) + 1 : key;
}

// Queries of a batch: those that the device answers, and the host's.
struct Shares {
    std::vector<std::uint32_t> device;
    std::vector<std::uint32_t> host;
};

class DeviceTextSearcher : public DeviceSearcher
{
public:
    DeviceTextSearcher(Context& context, const IndexShape& shape, std::span<const ArrayShape> arrays)
        : DeviceSearcher(context, 0, "text workspace"),
          stored_(std::in_place, shape, arrays),
          stream_(context.lease(Priority::build))
    {
        // A word holds four characters or fewer, each of which gets a byte here and there.
        const ArrayShape* words = find_array(arrays, array_list_words);
        if (words != nullptr) expected_bytes_ = words->rows * 4;
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_->write(array, offset, bytes)) throw BadRequest("unknown array of texts");
    }
    void finish_load(ThreadPool& pool) override
    {
        const DevicePatience patience(build_patience);
        check(cudaSetDevice(context().device()), "choosing the device");
        stored_->finish_load();
        texts_ = pgwarp::matchcount::TextsByLength(stored_->rows(), pool);
        mirror_.emplace(texts_, context().pool(), stream_, pool);
        times_ = TextTimes(texts_, mirror_->view().count, context().multiprocessors());
        stored_.reset();
    }
    std::uint64_t memory_bytes() const override
    {
        return mirror_ ? texts_.memory_bytes() + mirror_->device_bytes() : stored_->memory_bytes() + expected_bytes_;
    }
    Residence residence() const override
    {
        return {context().device(), false, mirror_ ? mirror_->device_bytes() : expected_bytes_};
    }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool finds_all() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        compare_texts(query, rows, out);
    }

    // In float operations of the CPU: the device answers batches of some hundred queries in less than a millisecond.
    double search_cost(const SearchBatch& batch) const override
    {
        const auto characters = static_cast<double>(mirror_->characters());
        double cost = std::min(1e7, static_cast<double>(batch.count) * characters / 1e3);
        // The CPU answers the others, 64 characters of a query in a step.
        for (const std::uint32_t i : share(batch).host)
            cost += 2.0 * characters * static_cast<double>(length_of(batch, i)) / 64;
        return cost;
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        if (is_one_round(batch)) settings.set(matchcount_one_round, 1);
        return settings;
    }

protected:
    std::size_t row_count() const override { return texts_.count(); }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        const double steps = static_cast<double>(batch.count) * static_cast<double>(mirror_->characters());
        return patience_for(100 * steps);
    }
    // Of places.
    Tombstones make_tombstones(RowBitmap dead, const Context::Lease& stream) const override
    {
        return send_dead_rows(texts_.bitmap_of_places(dead), texts_.count(), context().pool(), stream);
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override
    {
        search_after(batch, {-1, 0}, dead, results, pool);
    }
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                        ThreadPool& pool) const override
    {
        const DevicePatience patience(search_patience(one));
        search_after(one, after, dead, answer, pool);
    }

private:
    Shares share(const SearchBatch& batch) const;
    // The results behind `after`.
    void search_after(const SearchBatch& batch, const RowResult& after, const Tombstones* dead, Results& results,
                      ThreadPool& pool) const;
    // Returns the numbers of the queries that the device could not answer.
    std::vector<std::uint32_t> search_on_device(const SearchBatch& batch, std::span<const std::uint32_t> numbers,
                                                const RowResult& after, const Tombstones* dead, Results& results,
                                                ThreadPool& pool) const;
    void search_on_host(const SearchBatch& batch, std::span<const std::uint32_t> numbers, const RowResult& after,
                        Results& results, ThreadPool& pool) const;
    // A chunk of at most `most` of the queries.
    TextPlan plan_search(const SearchBatch& batch, std::span<const std::uint32_t> numbers, const RowResult& after,
                         std::size_t most, std::size_t room) const;
    bool is_complete(const SearchBatch& batch, std::uint32_t number, const std::vector<RowResult>& result) const;

    std::uint64_t expected_bytes_ = 0;         // of device memory
    std::optional<StoredLists> stored_;        // until they are loaded
    pgwarp::matchcount::TextsByLength texts_;  // afterwards
    Context::Lease stream_;                    // device arrays are made and freed in its order
    std::optional<TextMirror> mirror_;
    TextTimes times_;
};

Shares DeviceTextSearcher::share(const SearchBatch& batch) const
{
    Shares shares;
    for (std::uint32_t i = 0; i < batch.count; ++i) {
        const bool short_enough = length_of(batch, i) <= most_query_length;
        (short_enough ? shares.device : shares.host).push_back(i);
    }
    return shares;
}

void DeviceTextSearcher::search_after(const SearchBatch& batch, const RowResult& after, const Tombstones* dead,
                                      Results& results, ThreadPool& pool) const
{
    if (within_of(batch.settings) < 0) return;  // no distance is negative
    const Shares shares = share(batch);
    search_on_host(batch, search_on_device(batch, shares.device, after, dead, results, pool), after, results, pool);
    search_on_host(batch, shares.host, after, results, pool);
}

void DeviceTextSearcher::search_on_host(const SearchBatch& batch, std::span<const std::uint32_t> numbers,
                                        const RowResult& after, Results& results, ThreadPool& pool) const
{
    const double within = within_of(batch.settings);
    for (const std::uint32_t number : numbers) {
        batch.check_cancel();
        HostQuery query;
        if (within < no_edit_limit) query.within = static_cast<std::uint32_t>(within);
        query.text = view_text(batch.lists.list(number));
        query.k = batch.k;
        query.dead = batch.dead;
        query.after = after;
        query.cancel = batch.cancel;
        results[number] = scan_texts(texts_, query, pool);
    }
}

// Kernels write few results in place, and those of bounded searches, most of which find few.
TextPlan DeviceTextSearcher::plan_search(const SearchBatch& batch, std::span<const std::uint32_t> numbers,
                                         const RowResult& after, std::size_t most, std::size_t room) const
{
    TextPlan plan;
    plan.ordered = false;
    plan.k = std::min(batch.k, texts_.count());
    plan.wide = mirror_->alphabet().shares();
    plan.one_round = is_one_round(batch) && after.distance < 0;
    for (const std::uint32_t number : numbers) plan.longest = std::max(plan.longest, length_of(batch, number));
    plan.first_key = first_key_behind(after);
    plan.count = 1;
    TextSession::reserve(plan);
    const std::size_t most_by_room = std::min(most_chunk_bytes, room / 2) / plan.workspace;
    const std::size_t fit = std::min({most, most_queries, most_results / plan.k + 1, most_by_room});
    plan.count = static_cast<std::uint32_t>(std::max<std::size_t>(fit, 1));
    plan.numbers = numbers.first(plan.count);
    TextSession::reserve(plan);
    const bool bounded = !batch.reach.empty() || within_of(batch.settings) < no_bound;
    plan.answers_on_device = !bounded && std::size_t{plan.count} * plan.k > most_written_in_place;
    return plan;
}

std::vector<std::uint32_t> DeviceTextSearcher::search_on_device(const SearchBatch& batch,
                                                                std::span<const std::uint32_t> numbers,
                                                                const RowResult& after, const Tombstones* dead,
                                                                Results& results, ThreadPool& pool) const
{
    TextsView texts = mirror_->view();
    if (dead != nullptr) texts.dead = dead->words.data();
    const auto plan_of = [&](std::size_t first, std::size_t count, std::size_t room) {
        return plan_search(batch, numbers.subspan(first), after, count, room);
    };
    const auto enqueue = [&](const TextPlan& plan, const Chunk& chunk) {
        TextSession(context(), texts, times_, plan, chunk, batch).run(mirror_->alphabet());
    };
    const Round round(batch, {numbers.begin(), numbers.end()});
    const std::vector<std::uint32_t> unanswered =
        search_round(batch, round, plan_of, enqueue, results, pool).unanswered;
    std::vector<std::uint32_t> left;
    std::ranges::copy_if(numbers, std::back_inserter(left), [&](std::uint32_t number) {
        return std::ranges::binary_search(unanswered, number) || !is_complete(batch, number, results[number]);
    });
    return left;
}

// Whether no text that only the host has can be among the results.
bool DeviceTextSearcher::is_complete(const SearchBatch& batch, std::uint32_t number,
                                     const std::vector<RowResult>& result) const
{
    if (mirror_->view().count == texts_.count()) return true;
    const std::size_t k = std::min(batch.k, texts_.count());
    const double last = result.size() == k ? result.back().distance : reach_of(batch, number);
    return length_of(batch, number) + last <= most_text_length;
}

}  // namespace

std::unique_ptr<Searcher> make_text_searcher(Context& context, const IndexShape& shape,
                                             std::span<const ArrayShape> arrays)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<DeviceTextSearcher>(context, shape, arrays);
}

}  // namespace pgwarp::cuda
