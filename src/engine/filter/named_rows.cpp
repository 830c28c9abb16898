#include "engine/filter/named_rows.h"

#include <bit>

namespace pgwarp
{

namespace
{

constexpr std::size_t most_seeds = 64;

}  // namespace

NamedRows::NamedRows(std::vector<std::uint32_t> rows, std::size_t all) : all_(all)
{
    auto passing = std::make_shared<PassingRows>();
    passing->own = std::move(rows);
    passing->rows = passing->own;
    passing_ = std::move(passing);
}

PassCount NamedRows::count() const
{
    const std::span<const std::uint32_t> rows = passing_->rows;
    PassCount count;
    count.rows = count.listed = rows.size();
    count.exact = true;
    const std::size_t step = std::max<std::size_t>((rows.size() + most_seeds - 1) / most_seeds, 1);
    for (std::size_t i = 0; i < rows.size(); i += step) count.some.push_back(rows[i]);
    return count;
}

std::shared_ptr<const FailingRows> NamedRows::failing(RowBitmap dead)
{
    marked_.run([&] {
        auto failing = std::make_shared<FailingRows>();
        failing->version = new_bitmap_version();
        failing->bits.assign((all_ + 63) / 64, ~std::uint64_t{0});
        if (all_ % 64 != 0) failing->bits.back() = (std::uint64_t{1} << (all_ % 64)) - 1;
        for (const std::uint32_t row : passing_->rows) failing->bits[row / 64] &= ~(std::uint64_t{1} << (row % 64));
        std::uint64_t out = 0;
        for (std::size_t word = 0; word < failing->bits.size(); ++word) {
            if (!dead.empty()) failing->bits[word] |= dead[word];
            out += static_cast<std::uint64_t>(std::popcount(failing->bits[word]));
        }
        failing->live = all_ - out;
        failing_ = std::move(failing);
    });
    return failing_;
}

}  // namespace pgwarp
