#include "rows/remote_rows.h"

#include <algorithm>
#include <cstring>

#include "methods/method.h"

namespace pgwarp::cuda::rows
{

RemoteRows::RemoteRows(std::size_t rows, std::size_t dimensions, std::size_t element)
    : given_bytes_(dimensions * element),
      element_(element),
      stride_((dimensions * element + 15) / 16 * 16 / element),
      rows_(rows)
{
    memory_ = HostMemory(rows * row_bytes());
}

void RemoteRows::write(std::uint64_t offset, std::span<const std::byte> piece)
{
    const std::uint64_t all = rows_ * given_bytes_;
    if (offset > all || piece.size() > all - offset) throw BadRequest("past the end of an array");
    for (std::size_t done = 0; done < piece.size();) {
        const std::uint64_t at = offset + done;
        const std::size_t whole = given_bytes_ == row_bytes() ? piece.size() : given_bytes_ - at % given_bytes_;
        const std::size_t count = std::min(whole, piece.size() - done);
        std::memcpy(memory_.data() + at / given_bytes_ * row_bytes() + at % given_bytes_, piece.data() + done, count);
        done += count;
    }
}

}  // namespace pgwarp::cuda::rows
