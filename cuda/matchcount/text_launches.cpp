#include "matchcount/text_launches.h"

#include <algorithm>

namespace pgwarp::cuda
{

namespace
{

constexpr double operations_of_multiprocessor = 1.4e11;  // a second
constexpr double operations_of_bound = 60;               // reading the numbers of characters included
constexpr double operations_of_character = 6;            // and as many again for each word of the band:
constexpr double operations_of_word = 10;

}  // namespace

std::vector<TextLaunch> plan_text_launches(std::span<const double> seconds, double most)
{
    std::vector<TextLaunch> launches;
    double sum = 0;
    TextLaunch launch;
    const auto end_launch = [&](std::size_t next) {
        if (launch.count > 0) launches.push_back(launch);
        launch = {static_cast<std::uint32_t>(next), 0, 0, 1};
        sum = 0;
    };
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        if (sum + seconds[i] > most) end_launch(i);
        sum += seconds[i];
        ++launch.count;
        if (seconds[i] <= most) continue;
        launch.parts = static_cast<std::uint32_t>(std::min(seconds[i] / most, 1e6)) + 1;
        while (launch.part + 1 < launch.parts) {
            launches.push_back(launch);
            ++launch.part;
        }
        end_launch(i + 1);
    }
    end_launch(seconds.size());
    return launches;
}

TextTimes::TextTimes(const pgwarp::matchcount::TextsByLength& texts, std::uint32_t count, int multiprocessors)
    : operations_a_second_(operations_of_multiprocessor * multiprocessors)
{
    while (shorter_.back().count < count) {
        const auto length = static_cast<std::uint32_t>(shorter_.size()) - 1;
        const double end = std::min(texts.first_of_length(std::uint64_t{length} + 1), count);
        const Texts& before = shorter_.back();
        shorter_.push_back({end, before.characters + (end - before.count) * length});
    }
}

TextTimes::Texts TextTimes::within(std::uint32_t length, std::uint32_t gap) const
{
    const std::size_t last = shorter_.size() - 1;
    const Texts& first = shorter_[std::min<std::size_t>(length > gap ? length - gap : 0, last)];
    const Texts& end = shorter_[std::min(std::size_t{length} + gap + 1, last)];
    return {end.count - first.count, end.characters - first.characters};
}

double TextTimes::near(std::uint32_t length) const
{
    return within(length, most_near_bound(length)).count * operations_of_bound / operations_a_second_;
}

double TextTimes::rest(std::uint32_t length, std::uint32_t limit) const
{
    // No distance is larger than the longer length.
    const auto longest = static_cast<std::uint32_t>(shorter_.size());
    const double words = std::min(limit, std::max(length, longest)) / 32 + 1;
    const Texts texts = within(length, limit);
    const double operations =
        texts.count * operations_of_bound + texts.characters * (operations_of_character + operations_of_word * words);
    return operations / operations_a_second_;
}

}  // namespace pgwarp::cuda
