#include "matchcount/text_alphabet.h"

#include <algorithm>
#include <mutex>

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t near_characters = 65536;
constexpr std::uint32_t most_ids = 255;
constexpr std::uint32_t lone_groups = 24;  // of one id each

struct Frequency {
    std::uint32_t character = 0;
    std::uint64_t count = 0;
};

class Frequencies
{
public:
    Frequencies() : near_(near_characters) {}

    void add(const TextView& text)
    {
        for (std::uint32_t i = 0; i < text.length; ++i) {
            const std::uint32_t character = text[i];
            ++(character < near_characters ? near_[character] : far_[character]);
        }
    }
    void add(const Frequencies& other)
    {
        for (std::uint32_t i = 0; i < near_characters; ++i) near_[i] += other.near_[i];
        for (const auto& [character, count] : other.far_) far_[character] += count;
    }
    // The characters that occur, the most frequent first.
    std::vector<Frequency> sorted() const
    {
        std::vector<Frequency> all;
        for (std::uint32_t i = 0; i < near_characters; ++i)
            if (near_[i] > 0) all.push_back({i, near_[i]});
        for (const auto& [character, count] : far_) all.push_back({character, count});
        std::ranges::sort(all, [](const Frequency& a, const Frequency& b) {
            return a.count != b.count ? a.count > b.count : a.character < b.character;
        });
        return all;
    }

private:
    std::vector<std::uint64_t> near_;
    std::unordered_map<std::uint32_t, std::uint64_t> far_;
};

}  // namespace

TextAlphabet::TextAlphabet(const RowView& texts, ThreadPool& pool) : near_(near_characters)
{
    Frequencies all;
    std::mutex mutex;
    const std::size_t piece = std::max<std::size_t>(texts.count / (4 * pool.threads()), 16384);
    pool.parallel_for(texts.count, piece, [&](std::size_t begin, std::size_t end) {
        Frequencies some;
        for (std::size_t i = begin; i < end; ++i) some.add(view_text(texts.list(i)));
        const std::lock_guard lock(mutex);
        all.add(some);
    });
    const std::vector<Frequency> characters = all.sorted();
    shares_ = characters.size() > most_ids;
    for (std::uint32_t rank = 0; rank < characters.size(); ++rank) {
        const bool alone = !shares_ || rank + 1 < first_shared;
        const std::uint32_t id = alone ? rank + 1 : first_shared + rank % (most_ids + 1 - first_shared);
        const std::uint32_t character = characters[rank].character;
        (character < near_characters ? near_[character] : far_[character]) = static_cast<std::uint8_t>(id);
    }
    for (std::uint32_t id = 1; id <= most_ids; ++id) {
        const bool alone = id <= lone_groups;
        groups_[id] = static_cast<std::uint8_t>(alone ? id - 1 : lone_groups + id % (groups - lone_groups));
    }
}

}  // namespace pgwarp::cuda
