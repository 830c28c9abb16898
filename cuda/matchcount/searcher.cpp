// The searcher of text on the device. Few queries stay with the host: very long ones, those whose results may lie among
// very long texts, and those with very many results of one distance.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include "device/answers.h"
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

// Dead rows as places, for both sides.
struct DeadPlaces {
    std::vector<std::uint64_t> host;
    Tombstones device;
};

std::uint32_t length_of(const SearchBatch& batch, std::uint32_t query)
{
    return view_text(batch.lists.list(query)).length;
}

bool is_one_round(const SearchBatch& batch)
{
    return batch.settings.get(matchcount_one_round, 0) != 0;
}

// Queries of a batch: those that the device answers, and the host's.
struct Shares {
    std::vector<std::uint32_t> device;
    std::vector<std::uint32_t> host;
};

class DeviceTextSearcher : public Searcher
{
public:
    DeviceTextSearcher(Context& context, const IndexShape& shape, std::span<const ArrayShape> arrays)
        : context_(context),
          stored_(std::in_place, shape, arrays),
          stream_(context.lease(Priority::build)),
          workspaces_(context, "text workspace")
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
        check(cudaSetDevice(context_.device()), "choosing the device");
        stored_->finish_load();
        texts_ = matchcount::TextsByLength(stored_->rows(), pool);
        mirror_.emplace(texts_, context_.pool(), stream_, pool);
        times_ = TextTimes(texts_, mirror_->view().count, context_.multiprocessors());
        stored_.reset();
    }
    std::uint64_t memory_bytes() const override
    {
        return mirror_ ? texts_.memory_bytes() + mirror_->device_bytes() : stored_->memory_bytes() + expected_bytes_;
    }
    Residence residence() const override
    {
        return {context_.device(), false, mirror_ ? mirror_->device_bytes() : expected_bytes_};
    }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        compare_texts(query, rows, out);
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.resize(batch.count);
        for (auto& result : results) result.clear();
        search_after(batch, {-1, 0}, results, pool);
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        SearchBatch one = batch;
        one.count = 1;
        one.lists = batch.lists.row(0);
        one.reach = {};
        std::vector<std::vector<RowResult>> answer(1);
        search_after(one, {after_distance, after_row}, answer, pool);
        results = std::move(answer[0]);
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

private:
    using Results = std::vector<std::vector<RowResult>>;

    Shares share(const SearchBatch& batch) const;
    // The results behind `after`.
    void search_after(const SearchBatch& batch, const RowResult& after, Results& results, ThreadPool& pool) const;
    // Appends the numbers of the queries that the device could not answer to `left`.
    void search_chunk(const TextChunk& chunk, const SearchBatch& batch, const DeadPlaces* dead, Results& results,
                      ThreadPool& pool, std::vector<std::uint32_t>& left) const;
    void search_on_device(const SearchBatch& batch, const RowResult& after, Shares& shares, const DeadPlaces* dead,
                          Results& results, ThreadPool& pool) const;
    void search_on_host(const SearchBatch& batch, const RowResult& after, std::span<const std::uint32_t> numbers,
                        const DeadPlaces* dead, Results& results, ThreadPool& pool) const;
    TextChunk next_chunk(const SearchBatch& batch, std::span<const std::uint32_t> numbers, std::size_t most) const;
    bool is_complete(const TextChunk& chunk, const SearchBatch& batch, std::size_t i,
                     const std::vector<RowResult>& result) const;
    OfBitmap<DeadPlaces>::Use dead_places(const SearchBatch& batch) const;

    Context& context_;
    std::uint64_t expected_bytes_ = 0;   // of device memory
    std::optional<StoredLists> stored_;  // until they are loaded
    matchcount::TextsByLength texts_;    // afterwards
    Context::Lease stream_;              // device arrays are made and freed in its order
    std::optional<TextMirror> mirror_;
    TextTimes times_;
    mutable OfBitmap<DeadPlaces> dead_;
    mutable Workspaces workspaces_;
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

OfBitmap<DeadPlaces>::Use DeviceTextSearcher::dead_places(const SearchBatch& batch) const
{
    if (batch.dead.empty()) return nullptr;
    return dead_.get(batch.dead_version, [&] {
        DeadPlaces dead;
        dead.host = texts_.bitmap_of_places(batch.dead);
        dead.device = send_dead_rows(dead.host, texts_.count(), context_.pool(), stream_);
        return dead;
    });
}

void DeviceTextSearcher::search_after(const SearchBatch& batch, const RowResult& after, Results& results,
                                      ThreadPool& pool) const
{
    // No distance is negative.
    if (texts_.count() == 0 || batch.k == 0 || batch.count == 0 || within_of(batch.settings) < 0) return;
    const double steps = static_cast<double>(batch.count) * static_cast<double>(mirror_->characters());
    const DevicePatience patience(patience_for(100 * steps));
    check(cudaSetDevice(context_.device()), "choosing the device");
    const OfBitmap<DeadPlaces>::Use dead = dead_places(batch);
    Shares shares = share(batch);
    search_on_device(batch, after, shares, dead.get(), results, pool);
    search_on_host(batch, after, shares.host, dead.get(), results, pool);
}

void DeviceTextSearcher::search_on_host(const SearchBatch& batch, const RowResult& after,
                                        std::span<const std::uint32_t> numbers, const DeadPlaces* dead,
                                        Results& results, ThreadPool& pool) const
{
    const double within = within_of(batch.settings);
    for (const std::uint32_t number : numbers) {
        batch.check_cancel();
        HostQuery query;
        if (within < no_edit_limit) query.within = static_cast<std::uint32_t>(within);
        query.text = view_text(batch.lists.list(number));
        query.k = batch.k;
        if (dead != nullptr) query.dead = dead->host;
        query.after = after;
        query.cancel = batch.cancel;
        results[number] = scan_texts(texts_, query, pool);
    }
}

TextChunk DeviceTextSearcher::next_chunk(const SearchBatch& batch, std::span<const std::uint32_t> numbers,
                                         std::size_t most) const
{
    TextChunk chunk;
    chunk.k = std::min(batch.k, texts_.count());
    chunk.wide = mirror_->alphabet().shares();
    for (const std::uint32_t number : numbers) chunk.longest = std::max(chunk.longest, length_of(batch, number));
    const std::size_t room = std::min<std::size_t>(most_chunk_bytes, context_.pool().unspent() / 2);
    const std::size_t fit = std::min({most, most_queries, most_results / chunk.k + 1, room / text_query_bytes(chunk)});
    chunk.numbers = numbers.first(std::clamp<std::size_t>(fit, 1, numbers.size()));
    return chunk;
}

// Where memory is short, idle memory is freed and a chunk of half the queries is tried.
void DeviceTextSearcher::search_on_device(const SearchBatch& batch, const RowResult& after, Shares& shares,
                                          const DeadPlaces* dead, Results& results, ThreadPool& pool) const
{
    std::span<const std::uint32_t> numbers = shares.device;
    std::size_t most = numbers.size();
    bool tried_alone = false;
    while (!numbers.empty()) {
        batch.check_cancel();
        const bool had_begun = meanwhile_begun(batch);
        TextChunk chunk = next_chunk(batch, numbers, most);
        chunk.one_round = is_one_round(batch) && after.distance < 0;
        if (after.distance >= 0) {
            chunk.first_key = static_cast<std::uint64_t>(after.distance) << 32 | after.row;
            ++chunk.first_key;
        }
        try {
            search_chunk(chunk, batch, dead, results, pool, shares.host);
        } catch (const std::bad_alloc&) {
            if (tried_alone || meanwhile_begun(batch) != had_begun) throw;
            workspaces_.drop_idle();
            dead_.drop_before(batch.dead_version);
            tried_alone = chunk.count() == 1;
            most = std::max<std::size_t>(chunk.count() / 2, 1);
            continue;
        }
        numbers = numbers.subspan(chunk.count());
    }
}

// Whether no text that only the host has can be among the results.
bool DeviceTextSearcher::is_complete(const TextChunk& chunk, const SearchBatch& batch, std::size_t i,
                                     const std::vector<RowResult>& result) const
{
    if (mirror_->view().count == texts_.count()) return true;
    const double last = result.size() == chunk.k ? result.back().distance : chunk.reach(batch, i);
    return length_of(batch, chunk.numbers[i]) + last <= most_text_length;
}

void DeviceTextSearcher::search_chunk(const TextChunk& chunk, const SearchBatch& batch, const DeadPlaces* dead,
                                      Results& results, ThreadPool& pool, std::vector<std::uint32_t>& left) const
{
    const Workspaces::Lease workspace(workspaces_);
    TextsView texts = mirror_->view();
    if (dead != nullptr) texts.dead = dead->device.words.data();
    TextSession session(context_, texts, times_, chunk, batch, *workspace);
    session.run(mirror_->alphabet());
    wait_for(workspace->stream(), "waiting for answers");
    const TextAnswers& arrived = session.answers();

    std::mutex mutex;
    pool.parallel_for(chunk.count(), 64, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::vector<RowResult>& result = results[chunk.numbers[i]];
            const std::uint32_t found = arrived.found[i];
            if (found != no_answer) {
                std::uint64_t* const keys = arrived.keys + i * chunk.k;
                std::sort(keys, keys + found);
                result.resize(found);
                for (std::uint32_t at = 0; at < found; ++at)
                    result[at] = {static_cast<double>(keys[at] >> 32), static_cast<std::uint32_t>(keys[at])};
                if (is_complete(chunk, batch, i, result)) continue;
            }
            const std::lock_guard lock(mutex);
            left.push_back(chunk.numbers[i]);
        }
    });
}

}  // namespace

std::unique_ptr<Searcher> make_text_searcher(Context& context, const IndexShape& shape,
                                             std::span<const ArrayShape> arrays)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<DeviceTextSearcher>(context, shape, arrays);
}

}  // namespace pgwarp::cuda
