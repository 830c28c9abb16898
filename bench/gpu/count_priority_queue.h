// The count priority queue of GENIE as its paper has it (section 4.2, algorithm 1, appendix D), to compare with:
// counters and hash table of each query in global memory, one atomic addition a posting. Not a part of the product.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/memory.h"
#include "matchcount/match_count.h"

namespace pgwarp::bench
{

class CountPriorityQueues
{
public:
    // Counters have the fewest bits of 4, 8, 16 and 32 that hold `bound`; a table has 1.5 * k * bound entries.
    CountPriorityQueues(std::uint32_t queries, std::uint32_t rows, std::uint32_t k, std::uint32_t bound,
                        cuda::MemoryPool& pool, cudaStream_t stream);

    std::size_t counter_bytes_a_query() const { return counters_.bytes() / queries_; }
    std::size_t table_bytes_a_query() const { return table_.bytes() / queries_; }
    unsigned counter_bits() const { return bits_; }

    // How postings are shared out: a block takes all lists of a range of rows, or whole lists, without the balance of
    // appendix B.
    enum class Blocks { ranges, lists };
    // Scans the postings of the queries.
    void match(const cuda::matchcount::KeywordListsView& lists, const cuda::matchcount::CountQueries& queries,
               Blocks blocks = Blocks::ranges);
    // Copies the counts of the k best of each query, in descending order, to counts[queries][k] on the device.
    void select(std::uint32_t* counts);

private:
    struct View;  // what kernels read and write
    View view();

    cudaStream_t stream_;
    std::uint32_t queries_;
    std::uint32_t rows_;
    std::uint32_t k_;
    std::uint32_t bound_;
    unsigned bits_;
    std::uint32_t entries_;
    cuda::DeviceArray<std::uint32_t> counters_;      // [queries][words of all rows]
    cuda::DeviceArray<unsigned long long> table_;    // [queries][entries]
    cuda::DeviceArray<std::uint32_t> zipper_array_;  // [queries][bound + 2]
    cuda::DeviceArray<std::uint32_t> audit_;         // [queries]
};

}  // namespace pgwarp::bench
