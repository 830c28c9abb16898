// The characters of an index as bytes: frequent ones have an id of their own, rare ones share ids where there are more
// than a byte can tell apart. Texts of ids are never farther from each other than the texts themselves.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "numeric/parallel.h"
#include "protocol/rows.h"

namespace pgwarp::cuda
{

class TextAlphabet
{
public:
    static constexpr std::uint32_t groups = 32;         // of ids, for counts
    static constexpr std::uint32_t first_shared = 192;  // the ids from here on are shared, where any are

    TextAlphabet() = default;
    // Of the characters of these texts, which must be valid.
    TextAlphabet(const RowView& texts, ThreadPool& pool);

    // Returns the id of a character, from 1; 0 where no text has it.
    std::uint8_t id(std::uint32_t character) const
    {
        if (character < near_.size()) return near_[character];
        const auto found = far_.find(character);
        return found != far_.end() ? found->second : 0;
    }
    // Whether different characters have one id.
    bool shares() const { return shares_; }
    bool is_shared(std::uint8_t id) const { return shares_ && id >= first_shared; }
    // The group of each id: frequent ones are alone.
    const std::array<std::uint8_t, 256>& group_of_id() const { return groups_; }

private:
    std::vector<std::uint8_t> near_;  // ids of characters below 2^16
    std::unordered_map<std::uint32_t, std::uint8_t> far_;
    bool shares_ = false;
    std::array<std::uint8_t, 256> groups_{};
};

}  // namespace pgwarp::cuda
