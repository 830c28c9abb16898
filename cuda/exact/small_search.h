// Exact search of few queries at a time, made for the latency of one: memory is taken once, the kernels read the
// queries from page-locked memory and write the answer there, and the host watches for it. What cannot be proved is
// said and left to exact_search.h.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "methods/method.h"
#include "passes/passes.h"

namespace pgwarp::cuda
{

// One thread at a time. It has no stream of its own: when an answer is there, nothing is under way any more.
class SmallSearch
{
public:
    explicit SmallSearch(Context& context) : context_(&context) {}
    SmallSearch(const SmallSearch&) = delete;
    SmallSearch& operator=(const SmallSearch&) = delete;

    static bool serves(const ExactRows& rows, std::size_t count, std::uint32_t k)
    {
        return count <= few_queries && k <= largest_ranked_k && rows.rows > 0;
    }

    // Waits. The answer, in page-locked memory, stays until the next search; found[] may say not_proved. queries:
    // [count][dimensions], in any memory of the host. penalties: null = the rows' own. k: at most rows. meanwhile: what
    // to do while the device works; may be null.
    ExactAnswer search(const ExactRows& rows, const float* queries, std::uint32_t count, std::uint32_t k,
                       const float* penalties, Meanwhile* meanwhile = nullptr);

private:
    void reserve(const ExactRows& rows, std::uint32_t slots, const Plan& plan, cudaStream_t stream);
    void enqueue(const ExactRows& rows, const Plan& plan, std::uint32_t count, const float* penalties,
                 const ExactAnswer& answer, cudaStream_t stream);
    void send_queries(const ExactRows& rows, std::size_t bytes, cudaStream_t stream);

    Context* context_;
    Slab slab_;
    std::uint32_t slots_ = 0;
    std::uint32_t capacity_ = 0;
    std::uint32_t maxima_ = 0;
    PinnedArray<std::byte> operands_;
};

// Searches that are idle, kept for the next request. Thread-safe.
class SmallSearches
{
public:
    std::unique_ptr<SmallSearch> take(Context& context);
    void give_back(std::unique_ptr<SmallSearch> search);
    void drop_idle();

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<SmallSearch>> idle_;
};

}  // namespace pgwarp::cuda
