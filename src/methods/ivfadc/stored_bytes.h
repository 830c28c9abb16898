// Stored codes of an index with codes = int8 on their way into ByteLists. Arrays "code_scale", "codes".
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "methods/ivfadc/inverted_lists.h"
#include "methods/rows/byte_lists.h"
#include "numeric/metric.h"

namespace pgwarp
{

class StoredBytes
{
public:
    StoredBytes(Metric metric, std::size_t dimensions, std::size_t rows);

    // True when this array is one of the two: then the piece is put in its place. As Searcher::write().
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes, InvertedLists& lists);
    // The lists, once all is written. Throws BadRequest for scales that no build makes.
    ByteLists take(ThreadPool& pool);

private:
    void write_codes(std::uint64_t offset, std::span<const std::byte> bytes, InvertedLists& lists);

    Metric metric_;
    std::size_t dimensions_;
    std::vector<float> scale_;         // [rows]
    std::vector<std::uint32_t> slot_;  // [rows]
    ByteLists lists_;
    std::once_flag arranged_;
};

}  // namespace pgwarp
