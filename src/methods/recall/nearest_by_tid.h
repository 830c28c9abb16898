// The nearest rows of a query among rows that come in any order: by (score, tid), where TopK takes the first to come of
// equally far rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace pgwarp
{

class NearestByTid
{
public:
    struct Entry {
        float score;
        std::uint32_t number;
        std::uint64_t tid;
    };

    // Keeps the `wanted` nearest.
    explicit NearestByTid(std::size_t wanted);

    // Takes rows [count], the first of which has the number `first`. Rows whose score is no finite number are left out.
    void push(const float* scores, const std::uint64_t* tids, std::size_t count, std::uint32_t first);
    // Returns the nearest rows, ascending. Call once.
    std::vector<Entry> take();

private:
    void cut();

    std::size_t wanted_;
    std::size_t next_cut_;                                      // number of entries
    Entry last_{std::numeric_limits<float>::infinity(), 0, 0};  // rows behind it cannot enter
    std::vector<Entry> entries_;
};

}  // namespace pgwarp
