// Pieces of row-major codes go to slots of list-major blocks.
#include "methods/ivfadc/stored_bytes.h"

#include <algorithm>
#include <cmath>

#include "methods/arrays.h"
#include "methods/ivfadc/ivfadc.h"

namespace pgwarp
{

StoredBytes::StoredBytes(Metric metric, std::size_t dimensions, std::size_t rows)
    : metric_(metric), dimensions_(dimensions), scale_(rows)
{
}

bool StoredBytes::write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes,
                        InvertedLists& lists)
{
    if (array == array_code_scale) {
        write_piece(std::span<float>(scale_), offset, bytes);
    } else if (array == array_codes) {
        write_codes(offset, bytes, lists);
    } else {
        return false;
    }
    return true;
}

void StoredBytes::write_codes(std::uint64_t offset, std::span<const std::byte> bytes, InvertedLists& lists)
{
    lists.arrange();
    arranged_.run([&] {
        std::vector<std::uint32_t> sizes(lists.lists());
        for (std::size_t list = 0; list < sizes.size(); ++list) sizes[list] = lists.end(list) - lists.begin(list);
        lists_.layout(sizes, dimensions_, metric_ == Metric::l2);
        slot_.resize(lists.rows());
        for (std::size_t list = 0; list < sizes.size(); ++list) {
            for (std::size_t i = 0; i < sizes[list]; ++i) {
                slot_[lists.row_at(lists.begin(list) + i)] = static_cast<std::uint32_t>(lists_.begin(list) + i);
            }
        }
    });
    std::size_t done = 0;
    while (done < bytes.size()) {
        const std::uint64_t row = (offset + done) / dimensions_;
        const std::size_t within = (offset + done) % dimensions_;
        if (row >= slot_.size()) throw BadRequest("past the end of an array");
        const std::size_t count = std::min(dimensions_ - within, bytes.size() - done);
        lists_.put(slot_[row], within, count, reinterpret_cast<const std::uint8_t*>(bytes.data()) + done);
        done += count;
    }
}

ByteLists StoredBytes::take(ThreadPool& pool)
{
    pool.parallel_for(slot_.size(), 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            if (!(scale_[row] > 0) || !std::isfinite(scale_[row]))
                throw BadRequest("the scale of a code is impossible");
            lists_.finish(slot_[row], scale_[row]);
        }
    });
    return std::move(lists_);
}

}  // namespace pgwarp
