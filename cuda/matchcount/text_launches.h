// How the steps of a search of texts are cut into launches. Plain functions, for the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/matchcount/texts_by_length.h"

namespace pgwarp::cuda
{

enum class TextStep { near, rest };

inline constexpr std::uint32_t most_bounds = 64;  // that are counted

// The largest bound of the texts that the step `near` compares.
constexpr std::uint32_t most_near_bound(std::uint32_t length)
{
    return length / 4 + 4 < most_bounds ? length / 4 + 4 : most_bounds - 1;
}

// The work of one launch: some queries, and the texts of one part of `parts`.
struct TextLaunch {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t part = 0;
    std::uint32_t parts = 1;
};

// Returns launches of about `most` seconds or less each, for queries that take these times, in their order.
std::vector<TextLaunch> plan_text_launches(std::span<const double> seconds, double most);

// Estimates of the times of a query's steps.
class TextTimes
{
public:
    TextTimes() = default;
    // Of the first `count` places of `texts`.
    TextTimes(const pgwarp::matchcount::TextsByLength& texts, std::uint32_t count, int multiprocessors);

    double near(std::uint32_t length) const;
    // limit: the largest distance of interest.
    double rest(std::uint32_t length, std::uint32_t limit) const;

private:
    struct Texts {
        double count = 0;
        double characters = 0;
    };
    // The texts whose lengths differ from `length` by at most `gap`.
    Texts within(std::uint32_t length, std::uint32_t gap) const;

    std::vector<Texts> shorter_ = std::vector<Texts>(1);  // [longest + 2]: than each length
    double operations_a_second_ = 1;
};

}  // namespace pgwarp::cuda
