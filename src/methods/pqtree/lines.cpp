// The choice of lines, codes, and a query's terms.
#include "methods/pqtree/lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "methods/pqtree/line_kernels.h"
#include "methods/rows/reservation.h"

namespace pgwarp
{

namespace
{

constexpr double widest = 8;     // places reach this many times the root mean square of the sample, if its rows do
constexpr double margin = 1.05;  // and beyond the farthest row by this factor
constexpr std::size_t middle_place = 128;
constexpr std::size_t rows_at_a_time = 256;

// The centroids of the first level in a line part, and the place that is the origin of its kernels: their mean.
struct LinePart {
    std::size_t begin;
    std::size_t width;
    std::vector<float> centroids;  // [k1][width], relative to the origin
    std::vector<float> origin;     // [width]

    LinePart(const ProductTree& tree, const LineShape& shape, std::size_t number)
        : begin(shape.begin(number)), width(shape.width(number)), centroids(tree.shape.k1 * width), origin(width)
    {
        const std::size_t k1 = tree.shape.k1;
        for (std::size_t d = 0; d < width; ++d) {
            double sum = 0;
            for (std::size_t c = 0; c < k1; ++c) sum += tree.level1[c * tree.shape.dimensions + begin + d];
            origin[d] = static_cast<float>(sum / static_cast<double>(k1));
        }
        for (std::size_t c = 0; c < k1; ++c) {
            for (std::size_t d = 0; d < width; ++d)
                centroids[c * width + d] = tree.level1[c * tree.shape.dimensions + begin + d] - origin[d];
        }
    }
    const float* centroid(std::size_t number) const { return centroids.data() + number * width; }
    // Copies these columns of rows [count][dimensions].
    std::vector<float> columns_of(std::span<const float> rows, std::size_t dimensions) const
    {
        std::vector<float> columns(rows.size() / dimensions * width);
        for (std::size_t i = 0; i * width < columns.size(); ++i) {
            for (std::size_t d = 0; d < width; ++d)
                columns[i * width + d] = rows[i * dimensions + begin + d] - origin[d];
        }
        return columns;
    }
};

using Ends = std::pair<std::uint8_t, std::uint8_t>;

// The line through two centroids: its length, and its direction of unit length, or 0 where the centroids are equal.
struct Direction {
    std::vector<float> unit;
    double length = 0;

    Direction(const LinePart& part, Ends ends) : unit(part.width)
    {
        const float* from = part.centroid(ends.first);
        const float* to = part.centroid(ends.second);
        for (std::size_t d = 0; d < part.width; ++d) length += (double{to[d]} - from[d]) * (double{to[d]} - from[d]);
        length = std::sqrt(length);
        if (!(length > 0 && std::isfinite(length))) length = 0;
        for (std::size_t d = 0; d < part.width; ++d)
            unit[d] = length > 0 ? static_cast<float>((double{to[d]} - from[d]) / length) : 0.0F;
    }
};

PackedLines pack_lines(const LinePart& part, std::span<const Ends> lines)
{
    PackedLines packed(lines.size(), part.width);
    for (std::size_t line = 0; line < lines.size(); ++line)
        packed.set(line, part.centroid(lines[line].first), Direction(part, lines[line]).unit.data());
    return packed;
}

std::vector<Ends> all_pairs(std::size_t k1)
{
    std::vector<Ends> pairs;
    for (std::size_t i = 0; i < k1; ++i)
        for (std::size_t j = i + 1; j < k1; ++j)
            pairs.push_back({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(j)});
    return pairs;
}

// The pairs that are nearest to a row of the sample, in order of pairs.
std::vector<Ends> used_pairs(const LinePart& part, const std::vector<Ends>& pairs, const std::vector<float>& sample)
{
    std::vector<LinePlace> nearest(sample.size() / part.width);
    nearest_lines(pack_lines(part, pairs), sample.data(), nearest.size(), nearest.data());
    std::vector<std::uint32_t> used;
    for (const LinePlace& place : nearest) used.push_back(place.line);
    std::ranges::sort(used);
    const auto repeated = std::ranges::unique(used);
    used.erase(repeated.begin(), repeated.end());
    std::vector<Ends> lines;
    for (const std::uint32_t line : used) lines.push_back(pairs[line]);
    return lines;
}

// Chooses lines one after the other: the one that lowers the error the most. The gain of a line only falls as others
// are chosen, so one whose gain was computed anew and is still the largest is the next.
class GreedyChoice
{
public:
    // errors: [lines][rows].
    GreedyChoice(const float* errors, std::size_t lines, std::size_t rows)
        : errors_(errors), lines_(lines), rows_(rows), current_(rows, std::numeric_limits<float>::max())
    {
    }

    std::vector<std::size_t> run(std::size_t wanted)
    {
        if (lines_ == 0 || wanted == 0) return {};
        std::vector<std::size_t> chosen{best_alone()};
        take(chosen.front());
        for (std::size_t line = 0; line < lines_; ++line)
            if (line != chosen.front()) queue_.push(gain_of(line));
        while (chosen.size() < wanted && !queue_.empty()) {
            const Gain first = gain_of(queue_.top().line);
            queue_.pop();
            if (!queue_.empty() && first < queue_.top()) {
                queue_.push(first);
                continue;
            }
            chosen.push_back(first.line);
            take(first.line);
        }
        return chosen;
    }

private:
    struct Gain {
        float gain;
        std::size_t line;
        bool operator<(const Gain& other) const { return gain != other.gain ? gain < other.gain : line > other.line; }
    };

    const float* errors_of(std::size_t line) const { return errors_ + line * rows_; }
    Gain gain_of(std::size_t line) const { return {line_gain(current_.data(), errors_of(line), rows_), line}; }

    std::size_t best_alone() const
    {
        const std::vector<float> nothing(rows_, 0.0F);
        std::size_t best = 0;
        float least = std::numeric_limits<float>::infinity();
        for (std::size_t line = 0; line < lines_; ++line) {
            const float error = line_gain(errors_of(line), nothing.data(), rows_);
            if (error < least) best = line;
            least = std::min(least, error);
        }
        return best;
    }
    void take(std::size_t line)
    {
        for (std::size_t i = 0; i < rows_; ++i) current_[i] = std::min(current_[i], errors_of(line)[i]);
    }

    const float* errors_;
    std::size_t lines_;
    std::size_t rows_;
    std::vector<float> current_;  // the smallest error of each row
    std::priority_queue<Gain> queue_;
};

// Returns exactly `wanted` lines: chosen ones, then unused pairs where fewer were nearest to any row.
std::vector<Ends> choose_ends(const LinePart& part, std::size_t k1, std::size_t wanted,
                              const std::vector<float>& sample)
{
    const std::vector<Ends> pairs = all_pairs(k1);
    if (pairs.size() == wanted) return pairs;
    const std::vector<Ends> used = used_pairs(part, pairs, sample);
    const std::size_t rows = sample.size() / part.width;
    // Some megabytes of each thread, which wait for each other where they fault small pages in.
    const std::size_t bytes = used.size() * rows * sizeof(float);
    Reservation errors(std::max<std::size_t>(bytes, 1));
    errors.grow(bytes);
    line_errors(pack_lines(part, used), sample.data(), rows, rows, errors.as<float>());
    std::vector<Ends> lines;
    for (const std::size_t line : GreedyChoice(errors.as<float>(), used.size(), rows).run(wanted))
        lines.push_back(used[line]);
    for (const Ends& pair : pairs) {
        if (lines.size() == wanted) break;
        if (std::ranges::find(lines, pair) == lines.end()) lines.push_back(pair);
    }
    return lines;
}

// Where the mean of the sample lies on a line, as a distance from its first centroid.
double mean_along(const LinePart& part, const Direction& direction, Ends ends, const std::vector<double>& mean)
{
    double along = 0;
    for (std::size_t d = 0; d < part.width; ++d) along += (mean[d] - part.centroid(ends.first)[d]) * direction.unit[d];
    return along;
}

std::vector<double> mean_of(const std::vector<float>& rows, std::size_t width)
{
    std::vector<double> mean(width, 0.0);
    for (std::size_t i = 0; i < rows.size(); ++i) mean[i % width] += rows[i];
    for (double& value : mean) value /= std::max<double>(1, static_cast<double>(rows.size() / width));
    return mean;
}

// Fills in the places of a line part's lines: 255 steps over the range of the sample.
void scale_places(const LinePart& part, std::span<const Ends> lines, const std::vector<float>& sample, float* places)
{
    const std::vector<double> mean = mean_of(sample, part.width);
    std::vector<double> middles;
    std::vector<double> lengths;
    for (const Ends& ends : lines) {
        const Direction direction(part, ends);
        middles.push_back(mean_along(part, direction, ends, mean));
        lengths.push_back(direction.length);
    }
    std::vector<LinePlace> found(sample.size() / part.width);
    nearest_lines(pack_lines(part, lines), sample.data(), found.size(), found.data());
    double farthest = 0;
    double squares = 0;
    for (const LinePlace& place : found) {
        const double away = std::fabs(place.place - middles[place.line]);
        if (!std::isfinite(away)) continue;  // single precision does not hold the distance of the row to the line
        farthest = std::max(farthest, away);
        squares += away * away;
    }
    const double spread = std::sqrt(squares / std::max<double>(1, static_cast<double>(found.size())));
    const double step = 2 * std::min(margin * farthest, widest * spread) / 255;
    for (std::size_t line = 0; line < lines.size(); ++line) {
        const double length = lengths[line];
        const auto first = static_cast<float>((middles[line] - double{middle_place} * step) / length);
        const auto one_step = static_cast<float>(step / length);
        // Ends that are equal, or too near for the sample, make a line of one place.
        const bool is_long = length > 0 && std::isfinite(first) && std::isfinite(one_step);
        places[2 * line] = is_long ? first : 0.0F;
        places[2 * line + 1] = is_long ? one_step : 0.0F;
    }
}

// The lines of a line part as codes are made: a place is counted from that of the middle byte.
class LineEncoder
{
public:
    LineEncoder(const ProductTree& tree, const LineTable& table, std::size_t number)
        : part_(tree, table.shape, number), lines_(table.shape.lines(), part_.width), per_step_(table.shape.lines())
    {
        std::vector<float> point(part_.width);
        for (std::size_t i = 0; i < per_step_.size(); ++i) {
            const std::size_t line = number * per_step_.size() + i;
            const Ends ends{table.ends[2 * line], table.ends[2 * line + 1]};
            const Direction direction(part_, ends);
            const double along = direction.length * table.lambda(line, middle_place);
            for (std::size_t d = 0; d < part_.width; ++d)
                point[d] = static_cast<float>(part_.centroid(ends.first)[d] + along * direction.unit[d]);
            lines_.set(i, point.data(), direction.unit.data());
            const double step = direction.length * table.places[2 * line + 1];
            per_step_[i] = step > 0 ? static_cast<float>(1 / step) : 0.0F;
        }
    }

    const LinePart& part() const { return part_; }
    const PackedLines& lines() const { return lines_; }
    std::uint8_t byte(const LinePlace& place) const
    {
        const float steps = place.place * per_step_[place.line] + static_cast<float>(middle_place);
        return static_cast<std::uint8_t>(std::lrintf(std::min(std::max(steps, 0.0F), 255.0F)));
    }

private:
    LinePart part_;
    PackedLines lines_;
    std::vector<float> per_step_;
};

}  // namespace

LineTable choose_lines(const ProductTree& tree, std::size_t line_parts, std::span<const float> rows, ThreadPool& pool,
                       const CancelToken* cancel)
{
    LineTable table{{tree.shape, line_parts}, {}, {}};
    const std::size_t count = table.shape.lines();
    table.ends.resize(2 * line_parts * count);
    table.places.resize(2 * line_parts * count);
    pool.parallel_for(line_parts, 1, [&](std::size_t first, std::size_t last) {
        for (std::size_t number = first; number < last; ++number) {
            if (cancel != nullptr) cancel->check();
            const LinePart part(tree, table.shape, number);
            const std::vector<float> sample = part.columns_of(rows, tree.shape.dimensions);
            const std::vector<Ends> lines = choose_ends(part, tree.shape.k1, count, sample);
            for (std::size_t i = 0; i < count; ++i) {
                table.ends[2 * (number * count + i)] = lines[i].first;
                table.ends[2 * (number * count + i) + 1] = lines[i].second;
            }
            scale_places(part, lines, sample, table.places.data() + 2 * number * count);
        }
    });
    return table;
}

void encode_lines(const ProductTree& tree, const LineTable& table, std::span<const float> rows, std::size_t stride,
                  std::uint8_t* codes, ThreadPool& pool, const CancelToken* cancel)
{
    const std::size_t parts = table.shape.line_parts;
    const std::size_t dimensions = tree.shape.dimensions;
    std::vector<LineEncoder> encoders;
    for (std::size_t number = 0; number < parts; ++number) encoders.emplace_back(tree, table, number);
    pool.parallel_for(rows.size() / dimensions, rows_at_a_time, [&](std::size_t first, std::size_t last) {
        if (cancel != nullptr) cancel->check();
        std::vector<LinePlace> found(last - first);
        for (std::size_t number = 0; number < parts; ++number) {
            const LineEncoder& encoder = encoders[number];
            const std::vector<float> columns =
                encoder.part().columns_of(rows.subspan(first * dimensions, (last - first) * dimensions), dimensions);
            nearest_lines(encoder.lines(), columns.data(), found.size(), found.data());
            for (std::size_t i = 0; i < found.size(); ++i) {
                std::uint8_t* code = codes + (first + i) * stride;
                code[number] = static_cast<std::uint8_t>(found[i].line);
                code[parts + number] = encoder.byte(found[i]);
            }
        }
    });
}

void decode_lines(const ProductTree& tree, const LineTable& table, const std::uint8_t* code, float* out)
{
    const std::size_t parts = table.shape.line_parts;
    for (std::size_t number = 0; number < parts; ++number) {
        const std::size_t line = number * table.shape.lines() + code[number];
        const float* from = tree.level1.data() + table.end(line, 0) * tree.shape.dimensions;
        const float* to = tree.level1.data() + table.end(line, 1) * tree.shape.dimensions;
        const float lambda = table.lambda(line, code[parts + number]);
        for (std::size_t d = table.shape.begin(number); d < table.shape.begin(number + 1); ++d)
            out[d] = from[d] + lambda * (to[d] - from[d]);
    }
}

std::vector<float> line_lengths(const ProductTree& tree, const LineTable& table, Metric metric)
{
    const std::size_t lines = table.shape.lines();
    std::vector<float> lengths(table.shape.line_parts * lines, 0.0F);
    if (metric == Metric::inner_product) return lengths;
    for (std::size_t number = 0; number < table.shape.line_parts; ++number) {
        const LinePart part(tree, table.shape, number);
        for (std::size_t line = number * lines; line < (number + 1) * lines; ++line) {
            const double length = Direction(part, {table.ends[2 * line], table.ends[2 * line + 1]}).length;
            lengths[line] = static_cast<float>(length * length);
        }
    }
    return lengths;
}

float line_bias(const LineTable& table, std::span<const float> lengths, const std::uint8_t* code)
{
    double bias = 0;
    for (std::size_t number = 0; number < table.shape.line_parts; ++number) {
        const std::size_t line = number * table.shape.lines() + code[number];
        const double moved = double{table.places[2 * line + 1]} * code[table.shape.line_parts + number];
        bias += moved * moved * lengths[line];
    }
    return static_cast<float>(bias);
}

}  // namespace pgwarp
