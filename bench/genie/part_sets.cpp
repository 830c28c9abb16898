// Makes data sets and queries of parts: signatures of vectors, grams and words of texts, attributes of rows.
#include "part_sets.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "methods/matchcount/grams.h"

namespace pgwarp::bench::genie
{

namespace
{

using pgwarp::matchcount::GramForm;
using pgwarp::matchcount::HashFamily;
using pgwarp::matchcount::HashForm;
using pgwarp::matchcount::VectorHashes;

constexpr std::uint64_t seed = 1;
constexpr std::size_t target_queries = 128;  // whose nearest row by brute force is looked for

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void append_row(PartSet& set, const std::vector<std::uint32_t>& keywords)
{
    set.keywords.insert(set.keywords.end(), keywords.begin(), keywords.end());
    set.offsets.push_back(set.keywords.size());
}

std::vector<Item> single_items(const std::vector<std::uint32_t>& keywords)
{
    std::vector<Item> items;
    for (const std::uint32_t keyword : keywords) items.push_back({keyword, keyword});
    return items;
}

PartSet make_signatures(const std::string& name, const Sources& sources, std::size_t queries, ThreadPool& pool)
{
    const bool l1 = name == "fashion";
    const ByteVectors vectors = sources.vectors(name, queries);
    const auto begin = std::chrono::steady_clock::now();
    const VectorHashes hashes = paper_hashes(name, vectors);
    const std::vector<std::uint8_t> rows = signatures(hashes, vectors.base, pool);
    const std::size_t functions = hashes.form().functions;
    const std::size_t buckets = hashes.form().buckets;
    PartSet set;
    set.keywords.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
        set.keywords[i] = static_cast<std::uint32_t>(i % functions * buckets + rows[i]);
    for (std::size_t row = 0; row <= vectors.rows(); ++row) set.offsets.push_back(row * functions);
    set.make_seconds = seconds_since(begin);
    const std::vector<std::uint8_t> asked = signatures(hashes, vectors.queries, pool);
    for (std::size_t query = 0; query < vectors.asked(); ++query) {
        std::vector<std::uint32_t> keywords;
        for (std::size_t f = 0; f < functions; ++f)
            keywords.push_back(static_cast<std::uint32_t>(f * buckets + asked[query * functions + f]));
        set.queries.push_back(single_items(keywords));
    }
    set.buckets = static_cast<std::uint32_t>(buckets);
    set.parts = std::to_string(functions) + " functions of " + std::to_string(buckets) + " buckets";
    const std::size_t looked_for = std::min(vectors.asked(), target_queries);
    for (const Nearest& nearest : nearest_by_brute_force(l1, vectors, looked_for, 1, pool))
        set.targets.push_back(nearest[0].second);
    set.targets.resize(vectors.asked(), no_row);
    return set;
}

std::vector<std::uint32_t> grams_of(const std::string& text)
{
    std::vector<std::uint32_t> keywords;
    append_grams({static_cast<std::uint32_t>(text.size()), 1, text.data()}, GramForm{}, keywords);
    return keywords;
}

// Titles, or proteins as ordered 3-grams. Queries: one character in five is replaced.
PartSet make_grams(const std::string& name, const Sources& sources, std::size_t queries)
{
    const std::vector<std::string> texts = sources.texts(name);
    const bool titles = name == "titles";
    const auto begin = std::chrono::steady_clock::now();
    PartSet set;
    set.parts = "ordered 3-grams";
    set.offsets.push_back(0);
    for (const std::string& text : texts) append_row(set, grams_of(text));
    set.make_seconds = seconds_since(begin);
    std::mt19937 random(seed);
    std::vector<std::uint32_t> fitting;
    for (std::size_t i = 0; i < texts.size(); ++i)
        if (titles ? texts[i].size() == 40 : texts[i].size() >= 100 && texts[i].size() <= 400)
            fitting.push_back(static_cast<std::uint32_t>(i));
    for (std::size_t query = 0; query < queries && !fitting.empty(); ++query) {
        set.targets.push_back(fitting[random() % fitting.size()]);
        const std::string& text = texts[set.targets.back()];
        set.queries.push_back(single_items(grams_of(with_edits(text, text.size() / 5, Edits::substitutions, random))));
    }
    return set;
}

// Words that the paper's section 7.1.1 removes: the most frequent ones of English.
const std::unordered_set<std::string>& stop_words()
{
    static const std::unordered_set<std::string> words{
        "a",    "about", "all",  "am",   "an",    "and",  "are",  "as",    "at",   "be",   "been", "but", "by",  "can",
        "d",    "did",   "do",   "for",  "from",  "get",  "go",   "had",   "has",  "have", "he",   "her", "him", "his",
        "how",  "i",     "if",   "im",   "in",    "is",   "it",   "its",   "just", "ll",   "m",    "me",  "my",  "no",
        "not",  "now",   "of",   "on",   "one",   "or",   "our",  "out",   "re",   "s",    "she",  "so",  "t",   "that",
        "the",  "their", "them", "then", "there", "they", "this", "to",    "too",  "up",   "us",   "ve",  "was", "we",
        "were", "what",  "when", "who",  "why",   "will", "with", "would", "you",  "your"};
    return words;
}

// Tweets as sets of words. Queries: the last rows, which are not among the rows.
PartSet make_words(const Sources& sources, std::size_t queries)
{
    const std::vector<std::string> texts = sources.texts("tweets");
    const auto begin = std::chrono::steady_clock::now();
    PartSet set;
    set.parts = "words";
    set.offsets.push_back(0);
    std::unordered_map<std::string, std::uint32_t> numbers;
    queries = std::min(queries, texts.size() / 10);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        std::vector<std::uint32_t> keywords;
        std::string word;
        for (std::size_t c = 0; c <= texts[i].size(); ++c) {
            const auto character = static_cast<unsigned char>(c < texts[i].size() ? texts[i][c] : ' ');
            if (std::isalnum(character) != 0 || character >= 128) {
                word += static_cast<char>(std::tolower(character));
                continue;
            }
            if (!word.empty() && !stop_words().contains(word))
                keywords.push_back(numbers.try_emplace(word, static_cast<std::uint32_t>(numbers.size())).first->second);
            word.clear();
        }
        std::sort(keywords.begin(), keywords.end());
        keywords.erase(std::unique(keywords.begin(), keywords.end()), keywords.end());
        if (i + queries < texts.size()) {
            append_row(set, keywords);
        } else {
            set.queries.push_back(single_items(keywords));
            set.targets.push_back(no_row);
        }
    }
    set.make_seconds = seconds_since(begin);
    return set;
}

constexpr std::uint32_t attributes = 14;
constexpr std::uint32_t intervals = 1024;
constexpr bool is_number[attributes] = {true,  false, true,  false, true, false, false,
                                        false, false, false, true,  true, true,  false};

// attribute * intervals + interval of equal width, or number of the category; [rows][attributes]
std::vector<std::uint32_t> attribute_keywords(const std::vector<std::vector<std::string>>& rows)
{
    std::vector<std::uint32_t> keywords(rows.size() * attributes);
    for (std::uint32_t a = 0; a < attributes; ++a) {
        std::vector<double> numbers;
        for (const auto& row : rows)
            if (is_number[a]) numbers.push_back(std::stod(row[a]));
        std::map<std::string, std::uint32_t> categories;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (is_number[a]) break;
            const auto next = static_cast<std::uint32_t>(categories.size());
            keywords[i * attributes + a] = a * intervals + categories.try_emplace(rows[i][a], next).first->second;
        }
        if (!is_number[a]) continue;
        const double least = *std::min_element(numbers.begin(), numbers.end());
        const double most = *std::max_element(numbers.begin(), numbers.end());
        for (std::size_t i = 0; i < rows.size(); ++i)
            keywords[i * attributes + a] =
                a * intervals +
                std::min(intervals - 1, static_cast<std::uint32_t>((numbers[i] - least) / (most - least) * intervals));
    }
    return keywords;
}

}  // namespace

float paper_width(const std::string& name, const ByteVectors& vectors)
{
    const std::size_t dimensions = vectors.dimensions;
    const std::size_t sample = std::min<std::size_t>(vectors.rows(), 20000);
    if (name == "fashion") {
        double sum = 0;
        for (std::size_t i = 0; i + 1 < sample; i += 2)
            sum += byte_distance(true, vectors.row(i).data(), vectors.row(i + 1).data(), dimensions);
        return static_cast<float>(sum / static_cast<double>(sample / 2));
    }
    // a.x has the variance of all dimensions together, as the numbers of a are independent.
    double variance = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
        double sum = 0;
        double squares = 0;
        for (std::size_t i = 0; i < sample; ++i) {
            const double value = vectors.base[i * dimensions + d];
            sum += value;
            squares += value * value;
        }
        const auto n = static_cast<double>(sample);
        variance += squares / n - sum / n * (sum / n);
    }
    return static_cast<float>(std::sqrt(variance) * 8.84 / static_cast<double>(paper_buckets));
}

VectorHashes paper_hashes(const std::string& name, const ByteVectors& vectors)
{
    const bool l1 = name == "fashion";
    const HashForm form{l1 ? HashFamily::binning : HashFamily::stable, l1 ? Metric::l1 : Metric::l2, paper_functions,
                        l1 ? binning_buckets : paper_buckets};
    VectorHashes hashes(form, vectors.dimensions);
    hashes.draw(paper_width(name, vectors), seed);
    return hashes;
}

std::vector<std::uint8_t> signatures(const VectorHashes& hashes, const std::vector<std::uint8_t>& vectors,
                                     ThreadPool& pool)
{
    const std::size_t dimensions = hashes.dimensions();
    const std::size_t rows = vectors.size() / dimensions;
    std::vector<std::uint8_t> out(rows * hashes.signature_bytes());
    pool.parallel_for(rows, 1024, [&](std::size_t begin, std::size_t end) {
        std::vector<float> row(dimensions);
        for (std::size_t i = begin; i < end; ++i) {
            std::copy_n(vectors.begin() + static_cast<std::ptrdiff_t>(i * dimensions), dimensions, row.begin());
            hashes.sign(row.data(), out.data() + i * hashes.signature_bytes());
        }
    });
    return out;
}

std::uint32_t byte_distance(bool l1, const std::uint8_t* a, const std::uint8_t* b, std::size_t dimensions)
{
    std::uint32_t sum = 0;
    if (l1) {
        for (std::size_t d = 0; d < dimensions; ++d) sum += static_cast<std::uint32_t>(std::abs(int{a[d]} - int{b[d]}));
    } else {
        for (std::size_t d = 0; d < dimensions; ++d) {
            const int less = int{a[d]} - int{b[d]};
            sum += static_cast<std::uint32_t>(less * less);
        }
    }
    return sum;
}

std::vector<Nearest> nearest_by_brute_force(bool l1, const ByteVectors& vectors, std::size_t queries, std::size_t k,
                                            ThreadPool& pool)
{
    std::vector<Nearest> nearest(queries);
    pool.parallel_for(queries, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t query = begin; query < end; ++query) {
            Nearest all(vectors.rows());
            for (std::uint32_t row = 0; row < all.size(); ++row)
                all[row] = {byte_distance(l1, vectors.row(row).data(), vectors.query(query).data(), vectors.dimensions),
                            row};
            const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(k, all.size()));
            std::partial_sort(all.begin(), last, all.end());
            nearest[query].assign(all.begin(), last);
        }
    });
    return nearest;
}

double approximation_ratio(const Nearest& nearest, const Nearest& truth, std::size_t k, bool l1)
{
    double sum = 0;
    std::size_t counted = 0;
    for (std::size_t i = 0; i < std::min({k, nearest.size(), truth.size()}); ++i) {
        if (truth[i].first == 0 && nearest[i].first != 0) continue;
        const double ratio = truth[i].first == 0 ? 1 : static_cast<double>(nearest[i].first) / truth[i].first;
        sum += l1 ? ratio : std::sqrt(ratio);
        ++counted;
    }
    return counted == 0 ? 1 : sum / static_cast<double>(counted);
}

double recall_of(const Nearest& nearest, const Nearest& truth, std::size_t k)
{
    k = std::min(k, truth.size());
    std::size_t found = 0;
    for (std::size_t i = 0; i < std::min(k, nearest.size()); ++i)
        found += std::any_of(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(k),
                             [&](const auto& row) { return row.second == nearest[i].second; })
                     ? 1U
                     : 0U;
    return static_cast<double>(found) / static_cast<double>(k);
}

std::string with_edits(std::string text, std::size_t edits, Edits kind, std::mt19937& random)
{
    const bool upper =
        !text.empty() && std::isupper(static_cast<unsigned char>(text[0])) != 0 &&
        std::none_of(text.begin(), text.end(), [](char c) { return c == ' ' || (c >= 'a' && c <= 'z'); });
    const auto letter = [&] { return static_cast<char>((upper ? 'A' : 'a') + random() % 26); };
    if (kind == Edits::substitutions) {
        std::vector<std::size_t> places(text.size());
        std::iota(places.begin(), places.end(), 0);
        std::shuffle(places.begin(), places.end(), random);
        for (std::size_t i = 0; i < edits; ++i) {
            char other = text[places[i]];
            while (other == text[places[i]]) other = letter();
            text[places[i]] = other;
        }
        return text;
    }
    // A swap counts as two edits.
    for (std::size_t done = 0; done < edits;) {
        const std::size_t place = random() % text.size();
        const std::size_t which = random() % 3;
        if (which == 0) {
            text.insert(place, 1, letter());
        } else if (which == 1) {
            text.erase(place, 1);
        } else if (place + 1 < text.size() && text[place] != text[place + 1] && done + 2 <= edits) {
            std::swap(text[place], text[place + 1]);
            ++done;
        } else {
            continue;
        }
        ++done;
    }
    return text;
}

PartSet make_adult(const Sources& sources, std::size_t queries, std::size_t copies, std::uint32_t reach)
{
    const std::vector<std::uint32_t> base = attribute_keywords(sources.adult());
    PartSet set;
    set.name = "adult";
    set.parts = reach == 0 ? "14 attributes" : "14 attributes, ranges of +-" + std::to_string(reach);
    set.keywords.resize(base.size() * copies);
    for (std::size_t copy = 0; copy < copies; ++copy)
        std::copy(base.begin(), base.end(), set.keywords.begin() + static_cast<std::ptrdiff_t>(copy * base.size()));
    set.offsets.resize(set.keywords.size() / attributes + 1);
    for (std::size_t row = 0; row < set.offsets.size(); ++row) set.offsets[row] = row * attributes;
    std::mt19937 random(seed);
    for (std::size_t query = 0; query < queries; ++query) {
        const std::size_t row = random() % (base.size() / attributes);
        std::vector<Item> items;
        for (std::uint32_t a = 0; a < attributes; ++a) {
            const std::uint32_t first = a * intervals;
            const std::uint32_t value = base[row * attributes + a] - first;
            const std::uint32_t around = is_number[a] ? reach : 0;
            items.push_back(
                {first + (value > around ? value - around : 0), first + std::min(value + around, intervals - 1)});
        }
        set.queries.push_back(std::move(items));
        set.targets.push_back(no_row);
    }
    return set;
}

PartSet make_part_set(const std::string& name, const Sources& sources, std::size_t queries, ThreadPool& pool)
{
    PartSet set;
    if (name == "sift" || name == "fashion") {
        set = make_signatures(name, sources, queries, pool);
    } else if (name == "titles" || name == "proteins") {
        set = make_grams(name, sources, queries);
    } else if (name == "tweets") {
        set = make_words(sources, queries);
    } else if (name == "adult") {
        set = make_adult(sources, 10 * queries, sources.quick() ? 2 : 20, 50);
    } else {
        throw std::invalid_argument("unknown data: " + name);
    }
    set.name = name;
    return set;
}

}  // namespace pgwarp::bench::genie
