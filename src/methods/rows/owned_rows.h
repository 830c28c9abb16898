// Rows of any shape in memory of their own: queries until they are answered.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/rows.h"

namespace pgwarp
{

// All rows are of one layout and width. They have no attributes.
class OwnedRows
{
public:
    OwnedRows() = default;
    explicit OwnedRows(const RowView& rows) { append(rows); }

    void clear()
    {
        count_ = 0;
        values_.clear();
        offsets_.clear();
        words_.clear();
        weights_.clear();
    }
    void append(const RowView& rows)
    {
        count_ += rows.count;
        if (rows.offsets == nullptr) {
            width_ = rows.width;
            values_.insert(values_.end(), rows.values, rows.values + rows.count * rows.width);
            return;
        }
        if (offsets_.empty()) offsets_.push_back(0);
        for (std::size_t i = 0; i < rows.count; ++i)
            offsets_.push_back(offsets_.back() + rows.offsets[i + 1] - rows.offsets[i]);
        const auto add = [&rows](auto& to, const auto* from) {
            to.insert(to.end(), from + rows.offsets[0], from + rows.offsets[rows.count]);
        };
        add(words_, rows.words);
        weighted_ = rows.weights != nullptr;
        if (weighted_) add(weights_, rows.weights);
    }
    std::size_t count() const { return count_; }
    RowView view() const
    {
        RowView rows;
        rows.count = count_;
        if (offsets_.empty()) {
            rows.width = width_;
            rows.values = values_.data();
            return rows;
        }
        rows.offsets = offsets_.data();
        rows.words = words_.data();
        // A view without weights is one of lists that have none.
        static constexpr float no_weight = 0;
        if (weighted_) rows.weights = weights_.empty() ? &no_weight : weights_.data();
        return rows;
    }

private:
    std::size_t count_ = 0;
    std::size_t width_ = 0;
    bool weighted_ = false;
    std::vector<float> values_;
    std::vector<std::uint64_t> offsets_;
    std::vector<std::uint32_t> words_;
    std::vector<float> weights_;
};

}  // namespace pgwarp
