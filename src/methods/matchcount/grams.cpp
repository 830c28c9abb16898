// The keywords of a text.
#include "methods/matchcount/grams.h"

#include <bit>

#include "numeric/hash.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::uint64_t mark = 0xffffffff;             // beside the text; no character
constexpr std::uint64_t base = 0x9e3779b97f4a7c15ULL;  // of the polynomial in the characters of a gram

// The hashes of a text's grams, one after the other.
class GramHashes
{
public:
    GramHashes(const TextView& text, const GramForm& form) : text_(text), n_(form.n), shift_(64 - form.bits)
    {
        for (std::uint32_t i = 0; i < n_; ++i) {
            polynomial_ = polynomial_ * base + mark;
            first_factor_ = i == 0 ? 1 : first_factor_ * base;
        }
    }
    // Goes on by a character; behind the text come marks. The first call gives the gram that ends with the first one.
    std::uint32_t next()
    {
        const std::uint64_t first = at_ < n_ ? mark : character(at_ - n_);
        polynomial_ = (polynomial_ - first * first_factor_) * base + character(at_);
        ++at_;
        return static_cast<std::uint32_t>(mix_hash(polynomial_) >> shift_);
    }

private:
    std::uint64_t character(std::uint32_t at) const { return at < text_.length ? text_[at] : mark; }

    const TextView text_;
    const std::uint32_t n_;
    const std::uint32_t shift_;
    std::uint32_t at_ = 0;
    std::uint64_t polynomial_ = 0;
    std::uint64_t first_factor_ = 0;
};

// Counts equal grams of a text, in a table with open addressing.
class Ordinals
{
public:
    explicit Ordinals(std::size_t grams) : slots_(std::bit_ceil(2 * grams)) {}

    // How often the gram was given before.
    std::uint32_t next(std::uint32_t gram)
    {
        std::size_t at = gram * 0x9e3779b1U;
        for (;; ++at) {
            Slot& slot = slots_[at & (slots_.size() - 1)];
            if (slot.count > 0 && slot.gram != gram) continue;
            slot.gram = gram;
            return slot.count++;
        }
    }

private:
    struct Slot {
        std::uint32_t gram = 0;
        std::uint32_t count = 0;
    };
    std::vector<Slot> slots_;
};

// Appends the keywords of grams [first, end) of the padded text; the others are passed over.
void append_some(const TextView& text, const GramForm& form, std::uint32_t first, std::uint32_t end,
                 std::vector<std::uint32_t>& keywords)
{
    if (first >= end) return;
    GramHashes hashes(text, form);
    Ordinals ordinals(end - first);
    for (std::uint32_t i = 0; i < end; ++i) {
        const std::uint32_t gram = hashes.next();
        if (i < first) continue;
        const std::uint32_t ordinal = ordinals.next(gram);
        const std::uint64_t both = std::uint64_t{ordinal} << 32 | gram;
        keywords.push_back(ordinal == 0 ? gram : static_cast<std::uint32_t>(mix_hash(both) >> (64 - form.bits)));
    }
}

}  // namespace

void append_grams(const TextView& text, const GramForm& form, std::vector<std::uint32_t>& keywords)
{
    append_some(text, form, 0, text.length + form.n - 1, keywords);
}

void append_inner_grams(const TextView& text, const GramForm& form, std::vector<std::uint32_t>& keywords)
{
    append_some(text, form, form.n - 1, text.length, keywords);
}

}  // namespace pgwarp::matchcount
