// The description of graph.
#include "methods/graph/description.h"

#include <algorithm>
#include <cstdio>

#include "methods/comparisons.h"
#include "methods/graph/estimate.h"

namespace pgwarp
{

namespace
{

constexpr double usual_ef_search = 64;  // about the effort of the default recall
constexpr double usual_degree = 32;
constexpr int fewest_degree = 4;
constexpr int most_degree = 256;
constexpr int most_queries_of_warp = 4;
constexpr int most_steps = 32;
constexpr int usual_visited = -1;  // before the kinds of cuda/graph/visited.h

constexpr const char* vectors_choices[] = {"full", "half", "bits", nullptr};
constexpr ValueDescription options[] = {
    {.name = "degree", .help = "Neighbours of a row in the graph, 0 = 32", .maximum = most_degree},
    {.name = "build_degree",
     .help = "Nearest neighbours of a row that those of the graph are chosen from, 0 = 1.5 times degree",
     .maximum = most_degree},
    {.name = "vectors",
     .help = "What the index keeps of a row's vector",
     .kind = ValueKind::choice,
     .choices = vectors_choices},
    {.name = "bits",
     .help = "Random projections of a row where vectors = bits, 0 = chosen from the dimensions",
     .maximum = 512},
};

bool may_share_warp(int queries)
{
    return queries == 0 || queries == 1 || queries == 2 || queries == 4;
}

// The CPU follows ef_search alone; the others are the choices in a search of the SONG paper (Zhao, Tan, Li, ICDE 2020,
// sections 4 to 6), which the CUDA device follows (cuda/graph/launch_config.h).
constexpr const char* visited_choices[] = {"default", "hash", "bloom", "cuckoo", nullptr};
constexpr SettingDescription settings[] = {
    {.value = {.name = "graph_ef_search",
               .help = "Rows that a search of a graph index keeps as its best so far.",
               .maximum = 65536},
     .parameter = "ef_search",
     .detail = "0 means as many as pgwarp.recall needs.",
     .overrides_calibration = true,
     .is_effort = true},
    {.value = {.name = "graph_visited",
               .help = "How a search of a graph index on a GPU remembers visited rows.",
               .kind = ValueKind::choice,
               .default_value = usual_visited,
               .choices = visited_choices,
               .first_choice = usual_visited},
     .parameter = "visited",
     .detail = "The filters, bloom and cuckoo, may pass over a few rows."},
    {.value = {.name = "graph_bounded_queue",
               .help = "Whether the queue of a search on a GPU is no longer than what is kept.",
               .kind = ValueKind::boolean,
               .default_value = 1},
     .parameter = "unbounded_queue"},
    {.value = {.name = "graph_selected_insertion",
               .help = "Whether a search on a GPU remembers only visited rows that enter its queue.",
               .kind = ValueKind::boolean},
     .parameter = "selected_insertion"},
    {.value = {.name = "graph_visited_deletion",
               .help = "Whether a search on a GPU forgets visited rows that leave its queue.",
               .kind = ValueKind::boolean},
     .parameter = "visited_deletion",
     .detail = "Implies pgwarp.graph_selected_insertion. A Bloom filter can't forget."},
    {.value = {.name = "graph_multi_query",
               .help = "Queries that share a warp of a GPU: 1, 2 or 4.",
               .maximum = most_queries_of_warp},
     .parameter = "multi_query",
     .detail = "0: chosen by the device.",
     .accepts = may_share_warp,
     .refusal = "Queries share a warp evenly: 1, 2 or 4; 0: chosen by the device."},
    {.value = {.name = "graph_multi_step",
               .help = "Rows whose neighbours a search on a GPU looks at together.",
               .maximum = most_steps},
     .parameter = "multi_step",
     .detail = "0: chosen by the device."},
};

constexpr ArrayDescription arrays[] = {
    {array_seeds, ArrayRole::link_seeds},       {array_half_mean, ArrayRole::half_mean},
    {array_half_scale, ArrayRole::half_scale},  {array_projection, ArrayRole::quantizer},
    {array_neighbours, ArrayRole::links, true}, {array_edge_changes, ArrayRole::link_changes},
    {array_bits, ArrayRole::codes, true},       {array_half, ArrayRole::half_vectors, true},
    {array_vectors, ArrayRole::vectors, true},
};

constexpr MethodForm forms[] = {{"degree64", "degree = 64"}, {"half", "vectors = half"}, {"bits", "vectors = bits"}};

// An hnsw index has up to 2 m neighbours of a row in its bottom layer. With its defaults, degree and build_degree get
// the defaults of graph, 32 and 48.
void map_hnsw_options(const ParameterList& given, ParameterList* own)
{
    const std::int64_t degree = std::min<std::int64_t>(2 * given.get("m", 0), most_degree);
    const std::int64_t candidates = given.get("ef_construction", 0) * 3 / 4;
    own->set("degree", degree);
    own->set("build_degree", std::clamp<std::int64_t>(candidates, degree, most_degree));
}

constexpr AliasService aliases[] = {
    {MethodAlias::hnsw, {ElementType::float32, ElementType::float16, ElementType::bit}, map_hnsw_options, "ef_search"},
};

GraphVectors vectors_of(const ParameterList& given)
{
    return static_cast<GraphVectors>(given.get("vectors", 0));
}

OptionFault refuse(const char* message, const char* hint)
{
    OptionFault fault;
    std::snprintf(fault.message, sizeof(fault.message), "%s", message);
    fault.hint = hint;
    return fault;
}

OptionFault check_options(const ParameterList& given, const IndexShape& column)
{
    const std::int64_t degree = given.get("degree", 0);
    const std::int64_t build_degree = given.get("build_degree", 0);
    const std::int64_t bits = given.get("bits", 0);
    if (degree != 0 && degree < fewest_degree) {
        return refuse("degree must be 0 or at least 4", "With fewer neighbours, recall falls.");
    }
    if (bits % 32 != 0) return refuse("bits must be a multiple of 32", "Common values are 128, 256 and 512.");
    if (bits != 0 && vectors_of(given) != GraphVectors::bits) {
        return refuse("bits are of no use without vectors = bits", "Set both, or neither.");
    }
    if (build_degree != 0 && build_degree < std::max<std::int64_t>(degree, fewest_degree)) {
        return refuse("build_degree must be 0 or at least 4, and not less than degree",
                      "The neighbours of a row are chosen from the build_degree nearest ones.");
    }
    return check_form_of_bits(given, column);
}

ResultPromise promise_results(const ParameterList& given, ElementType, Metric metric)
{
    const GraphVectors vectors = vectors_of(given);
    if (vectors == GraphVectors::full) return promise_of_vectors(metric == Metric::cosine);
    return {vectors == GraphVectors::half ? ResultKind::lower_bound : ResultKind::approximate};
}

// About half of the neighbours were seen before; a row at a random address costs twice as much as one of a block.
double compare_neighbours(const SearchCostInput& input)
{
    auto degree = static_cast<double>(input.options.get("degree", 0));
    if (degree <= 0) degree = usual_degree;
    auto ef_search = static_cast<double>(input.settings.get("ef_search", 0));
    if (ef_search <= 0) ef_search = usual_ef_search;
    return std::min(input.rows, ef_search * degree);
}

}  // namespace

constexpr MethodDescription graph_description = {
    .method = Method::graph,
    .name = "graph",
    .comment = "proximity graph of fixed degree",
    .options = options,
    .settings = settings,
    .comparisons = dense_comparisons,
    .arrays = arrays,
    .forms = forms,
    .aliases = aliases,
    .check_options = check_options,
    .result_promise = promise_results,
    .compared_rows = compare_neighbours,
    .estimate_build = estimate_graph_build,
    .links_rows = true,
};

}  // namespace pgwarp
