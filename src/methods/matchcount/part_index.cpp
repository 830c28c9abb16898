// The mirror of sets and attributes, the items of a query, and distances.
#include "methods/matchcount/part_index.h"

#include "methods/matchcount/slice_counter.h"
#include "protocol/part_rows.h"

namespace pgwarp::matchcount
{

PartIndex make_part_index(const IndexShape& shape, RankedRows ranked, ThreadPool& pool)
{
    const auto metric = static_cast<Metric>(shape.metric);
    PartIndex index{shape.element, metric, std::move(ranked.dictionary), KeywordLists(ranked.rows(), pool), {}, {}};
    index.bitmaps = KeywordBitmaps(index.lists, pool);
    if (metric != Metric::set_jaccard) return index;
    const std::size_t rows = ranked.offsets.size() - 1;
    index.sizes.resize(rows + most_rows_of_block, 0);
    for (std::size_t i = 0; i < rows; ++i)
        index.sizes[i] = static_cast<std::uint16_t>(ranked.offsets[i + 1] - ranked.offsets[i]);
    return index;
}

std::vector<Item> items_of(const PartDictionary& dictionary, ElementType element, std::span<const std::uint32_t> query)
{
    std::vector<Item> items;
    const auto add = [&](std::uint64_t name, std::uint64_t first, std::uint64_t last) {
        const Item item = dictionary.find(name, first, last);
        if (item.first <= item.last) items.push_back(item);
    };
    if (element == ElementType::set) {
        for (std::size_t at = 0; at < query.size(); at += set_words) {
            const std::uint64_t number = part_number(query.data() + at);
            add(no_name, number, number);
        }
        return items;
    }
    AttributeItems of_query(query);
    AttributeItem item;
    while (of_query.next(&item))
        for (std::uint32_t i = 0; i < item.ranges; ++i) add(item.name, item.first(i), item.last(i));
    return items;
}

double cost_of_counting(ElementType element, std::size_t rows, const RowView& queries)
{
    const std::size_t words = element == ElementType::set ? set_words : item_words + set_words;
    const double items = static_cast<double>(queries.word_count()) / static_cast<double>(words);
    return static_cast<double>(rows) * (static_cast<double>(queries.count) + items / 16);
}

double distance_of_parts(ElementType element, Metric metric, std::span<const std::uint32_t> query,
                         std::span<const std::uint32_t> row)
{
    if (element == ElementType::attribute_set) return overlap_distance(count_matches(query, row));
    const std::uint32_t common = count_common(query, row);
    if (metric == Metric::overlap) return overlap_distance(common);
    return jaccard_distance_of_sets(common, query.size() / set_words, row.size() / set_words);
}

}  // namespace pgwarp::matchcount
