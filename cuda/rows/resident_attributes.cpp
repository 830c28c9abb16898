#include "rows/resident_attributes.h"

#include <algorithm>

#include "device/error.h"
#include "device/wait.h"
#include "methods/device_wait.h"

namespace pgwarp::cuda::rows
{

namespace
{

std::vector<CodeSpan> spans_of(const RowFilter& filter, std::size_t rows)
{
    std::vector<CodeSpan> spans(filter.columns, CodeSpan{~std::uint64_t{0}, 0});
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < filter.columns; ++column) {
            const std::uint64_t code = filter.attributes[row * filter.columns + column];
            spans[column].first = std::min(spans[column].first, code);
            spans[column].last = std::max(spans[column].last, code);
        }
    }
    return spans;
}

}  // namespace

AttributeView ResidentAttributes::get(const RowFilter& filter, std::size_t rows)
{
    sent_.run([&] {
        const std::size_t count = rows * filter.columns;
        const DevicePatience patience(patience_for(0, static_cast<double>(count * sizeof(std::uint64_t))));
        check(cudaSetDevice(context_->device()), "choosing the device");
        if (!owner_.has_value()) owner_.emplace(context_->lease(Priority::search));
        DeviceArray<std::uint64_t> codes(context_->pool(), count, "attributes of rows", *owner_);
        send(codes.data(), filter.attributes, count * sizeof(std::uint64_t), *owner_, "sending attributes");
        spans_ = spans_of(filter, rows);
        // Searches read the copy in the order of streams of their own.
        wait_for(*owner_, "sending attributes");
        codes_ = std::move(codes);
        bytes_.store(codes_.bytes(), std::memory_order_relaxed);
    });
    return {codes_.data(), static_cast<std::uint32_t>(filter.columns), spans_.data()};
}

}  // namespace pgwarp::cuda::rows
