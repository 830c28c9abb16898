// Rows that a caller names, for a search among them: as a list, and as a bitmap of all others.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/filter/filter_index.h"

namespace pgwarp
{

// Thread-safe.
class NamedRows
{
public:
    // rows: each once, of an index of `all` rows.
    NamedRows(std::vector<std::uint32_t> rows, std::size_t all);

    PassCount count() const;
    const std::shared_ptr<const PassingRows>& passing() const { return passing_; }
    // The rows that are not named, or dead. `dead` is the same with every call.
    std::shared_ptr<const FailingRows> failing(RowBitmap dead);

private:
    std::shared_ptr<const PassingRows> passing_;
    std::size_t all_;
    Once marked_;
    std::shared_ptr<const FailingRows> failing_;
};

}  // namespace pgwarp
