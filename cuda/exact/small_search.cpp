#include "exact/small_search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "device/beside.h"
#include "device/error.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t pending = not_proved - 1;
constexpr std::size_t most_idle = 8;

// A search of a millisecond or less is watched for; longer ones are left to the driver.
constexpr std::chrono::milliseconds watched{2};

// A search that ends in an exception may still be reading and writing its memory.
class UnderWay
{
public:
    explicit UnderWay(cudaStream_t stream) : stream_(stream) {}
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    ~UnderWay()
    {
        if (!over_) drain(stream_);
    }
    void over() { over_ = true; }

private:
    cudaStream_t stream_;
    bool over_ = false;
};

}  // namespace

ExactAnswer SmallSearch::search(const ExactRows& rows, const float* queries, std::uint32_t count, std::uint32_t k,
                                const float* penalties, Meanwhile* meanwhile)
{
    const Plan plan = make_plan(*context_, rows, k, count);
    const std::size_t query_bytes = round_up<std::size_t>(std::size_t{count} * rows.dimensions * sizeof(float), 256);
    const std::size_t results = std::size_t{count} * k;
    const Context::Lease stream = context_->lease(Priority::search);
    // By streaming no slots are looked at but those of queries.
    reserve(rows, count <= streamed_queries ? streamed_queries : tile_queries, plan, stream);
    const std::size_t bytes = query_bytes + results * 12 + count * 4;
    if (operands_.size() < bytes) {
        operands_ = {};
        operands_ = PinnedArray<std::byte>(std::max<std::size_t>(bytes, std::size_t{1} << 16));
    }
    ExactAnswer answer;
    answer.values = reinterpret_cast<double*>(operands_.data() + query_bytes);
    answer.rows = reinterpret_cast<std::uint32_t*>(answer.values + results);
    answer.found = answer.rows + results;
    answer.k = k;
    std::memcpy(operands_.data(), queries, std::size_t{count} * rows.dimensions * sizeof(float));
    std::fill_n(answer.found, count, pending);
    std::atomic_thread_fence(std::memory_order_seq_cst);

    if (penalties == nullptr) penalties = rows.scored.penalties.data();
    UnderWay under_way(stream);
    enqueue(rows, plan, count, penalties, answer, stream);
    run_beside(stream, meanwhile);
    wait_for_answers(answer.found, count, pending, watched, stream);
    under_way.over();
    return answer;
}

void SmallSearch::reserve(const ExactRows& rows, std::uint32_t slots, const Plan& plan, cudaStream_t stream)
{
    const std::uint32_t maxima = plan.sample / maxima_group;
    if (slots <= slots_ && plan.capacity <= capacity_ && maxima <= maxima_) return;
    slots_ = std::max(slots_, slots);
    capacity_ = std::max(capacity_, plan.capacity);
    maxima_ = std::max(maxima_, maxima);
    slab_ = {};
    slab_ = Slab(context_->pool(), rows.scored, slots_, capacity_, maxima_, true, stream);
}

void SmallSearch::enqueue(const ExactRows& rows, const Plan& plan, std::uint32_t count, const float* penalties,
                          const ExactAnswer& answer, cudaStream_t stream)
{
    slab_.take(count, count <= streamed_queries ? count : tile_queries);
    send_queries(rows, std::size_t{count} * rows.dimensions * sizeof(float), stream);
    const Passes passes{context_, &rows, penalties, nullptr, stream};
    passes.propose(slab_, plan);
    RankJob job;
    job.rows = &rows.scored;
    job.vectors = rows.vectors;
    job.queries = slab_.queries;
    job.proposals = slab_.proposals(plan);
    job.incomplete = slab_.incomplete;
    job.answer = answer;
    job.host_waits = true;
    rank_proposals(*context_, job, stream);
}

// Kernels read what is short where it lies.
void SmallSearch::send_queries(const ExactRows& rows, std::size_t bytes, cudaStream_t stream)
{
    constexpr std::size_t read_in_place = std::size_t{32} << 10;
    const auto* from = reinterpret_cast<const float*>(operands_.data());
    PreparedQueries prepared = slab_.queries;
    if (bytes > read_in_place) {
        check(cudaMemcpyAsync(prepared.copies, from, bytes, cudaMemcpyHostToDevice, stream), "sending queries");
        from = prepared.copies;
        prepared.copies = nullptr;
    }
    prepare_queries(rows.scored, from, nullptr, 0, prepared, stream);
}

std::unique_ptr<SmallSearch> SmallSearches::take(Context& context)
{
    check(cudaSetDevice(context.device()), "choosing the device");
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto search = std::move(idle_.back());
            idle_.pop_back();
            return search;
        }
    }
    return std::make_unique<SmallSearch>(context);
}

void SmallSearches::drop_idle()
{
    std::vector<std::unique_ptr<SmallSearch>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(idle_);
}

void SmallSearches::give_back(std::unique_ptr<SmallSearch> search)
{
    const std::lock_guard lock(mutex_);
    if (idle_.size() < most_idle) idle_.push_back(std::move(search));
}

}  // namespace pgwarp::cuda
