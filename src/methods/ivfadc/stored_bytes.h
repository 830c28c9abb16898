// Loads the stored codes of an index with codes = int8 into ByteLists. Arrays "code_scale", "codes".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "methods/ivfadc/inverted_lists.h"
#include "methods/once.h"
#include "methods/rows/byte_lists.h"
#include "numeric/metric.h"

namespace pgwarp
{

class StoredBytes
{
public:
    StoredBytes(Metric metric, std::size_t dimensions, std::size_t rows);

    // Copies a piece of one of the two arrays; returns false for other arrays. Thread-safe as Searcher::write().
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes, InvertedLists& lists);
    // Returns the lists, once all is written. Throws BadRequest for invalid scales.
    ByteLists take(ThreadPool& pool);

private:
    void write_codes(std::uint64_t offset, std::span<const std::byte> bytes, InvertedLists& lists);

    Metric metric_;
    std::size_t dimensions_;
    std::vector<float> scale_;         // [rows]
    std::vector<std::uint32_t> slot_;  // [rows]
    ByteLists lists_;
    Once arranged_;
};

}  // namespace pgwarp
