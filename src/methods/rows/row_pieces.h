// Rows of fixed size that come in pieces of any size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pgwarp
{

class RowPieces
{
public:
    // Passes the rows on that are whole with this piece: use(first, count, rows), at most most_rows at a time. A row in
    // two pieces is passed on once its rest has come.
    template <class Use>
    void give(std::span<const std::byte> bytes, std::size_t row_bytes, const Use& use)
    {
        std::size_t first = bytes_ / row_bytes;
        bytes_ += bytes.size();
        if (!begun_.empty()) {
            const std::size_t missing = std::min(row_bytes - begun_.size(), bytes.size());
            begun_.insert(begun_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(missing));
            bytes = bytes.subspan(missing);
            if (begun_.size() < row_bytes) return;
            use(first++, std::size_t{1}, begun_.data());
        }
        const std::size_t whole = bytes.size() / row_bytes;
        for (std::size_t done = 0; done < whole; done += most_rows)
            use(first + done, std::min(most_rows, whole - done), bytes.data() + done * row_bytes);
        begun_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(whole * row_bytes), bytes.end());
    }
    // The number of bytes given.
    std::uint64_t bytes() const { return bytes_; }

private:
    static constexpr std::size_t most_rows = 512;

    std::vector<std::byte> begun_;  // the first bytes of a row
    std::uint64_t bytes_ = 0;
};

}  // namespace pgwarp
