#include "postgres/am/methods.h"

#include <cmath>

#include "postgres/am/callbacks.h"
#include "postgres/am/index_options.h"
#include "postgres/settings.h"

namespace pgwarp
{

namespace
{

// The two callbacks that PostgreSQL calls without an index, made for each method.
template <Method method>
bytea* parse_options(Datum options, bool validate)
{
    return parse_method_options(access_method(method), options, validate);
}

template <Method method>
void estimate_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost, Cost* total_cost,
                   Selectivity* selectivity, double* correlation, double* pages)
{
    estimate_method_cost(access_method(method), root, path, loop_count, startup_cost, total_cost, selectivity,
                         correlation, pages);
}

void no_checks(const ParameterList&, uint32) {}
bool no_settings(ParameterList*)
{
    return false;
}

// --- exact ---

const char* const exact_vectors[] = {"full", "half", nullptr};
const MethodOption exact_options[] = {
    {"vectors", "Precision in which candidates are found", OptionKind::choice, 0, 0, 0, exact_vectors,
     "Valid values are \"full\" and \"half\"."},
};

ResultKind exact_result_kind(const ParameterList&)
{
    return ResultKind::exact;
}
double exact_compared_rows(const SearchCostInput& input)
{
    return input.rows;
}

// --- ivfadc ---

const char* const ivfadc_codes[] = {"pq", "half", "int8", nullptr};
const char* const ivfadc_refine[] = {"none", "half", "full", nullptr};
const MethodOption ivfadc_options[] = {
    {"lists", "Number of inverted lists, 0 = chosen from the number of rows", OptionKind::integer, 0, 0, 65536, nullptr,
     nullptr},
    {"codes", "What the lists hold", OptionKind::choice, 0, 0, 0, ivfadc_codes,
     "Valid values are \"pq\", \"half\" and \"int8\"."},
    {"subquantizers", "Bytes of a product quantizer code, 0 = chosen from the dimensions", OptionKind::integer, 0, 0,
     static_cast<int>(max_dimensions), nullptr, nullptr},
    {"opq", "Rotate vectors so that the product quantizer loses less", OptionKind::boolean, 0, 0, 1, nullptr, nullptr},
    {"refine", "Vectors kept to re-rank the best candidates", OptionKind::choice, 1, 0, 0, ivfadc_refine,
     "Valid values are \"none\", \"half\" and \"full\"."},
};

void ivfadc_check_options(const ParameterList& options, uint32 dimensions)
{
    const int64 subquantizers = options.get("subquantizers", 0);
    if (dimensions != 0 && subquantizers > static_cast<int64>(dimensions)) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("subquantizers (" INT64_FORMAT ") must not exceed the number of dimensions (%u)",
                               subquantizers, dimensions)));
    }
}

bool ivfadc_add_settings(ParameterList* settings)
{
    if (setting_ivfadc_probes > 0) settings->set("probes", setting_ivfadc_probes);
    if (setting_refine_factor > 0) settings->set("refine_factor", setting_refine_factor);
    return settings->count > 0;
}

ResultKind ivfadc_result_kind(const ParameterList& options)
{
    switch (options.get("refine", 1)) {
        case 0:
            return options.get("codes", 0) == 1 ? ResultKind::lower_bound : ResultKind::approximate;
        case 1:
            return ResultKind::lower_bound;
        default:
            return ResultKind::exact;
    }
}

double ivfadc_compared_rows(const SearchCostInput& input)
{
    double lists = static_cast<double>(input.options.get("lists", 0));
    if (lists <= 0) lists = std::floor(2.0 * std::sqrt(input.rows));
    lists = Max(1.0, Min(lists, input.rows));
    double probes = input.any_session ? 0 : setting_ivfadc_probes;
    if (probes <= 0) probes = Max(1.0, lists * 0.05);
    return lists + 0.5 * input.rows * Min(1.0, probes / lists);
}

// --- graph ---

constexpr double usual_ef_search = 64;  // what the usual recall takes, about
constexpr double usual_degree = 32;
constexpr int fewest_degree = 4;
constexpr int most_degree = 256;

const char* const graph_vectors[] = {"full", "half", "bits", nullptr};
const MethodOption graph_options[] = {
    {"degree", "Neighbours of a row in the graph, 0 = usual", OptionKind::integer, 0, 0, most_degree, nullptr, nullptr},
    {"build_degree", "Nearest neighbours of a row that those of the graph are chosen from, 0 = usual",
     OptionKind::integer, 0, 0, most_degree, nullptr, nullptr},
    {"vectors", "What the index keeps of a row's vector", OptionKind::choice, 0, 0, 0, graph_vectors,
     "Valid values are \"full\", \"half\" and \"bits\"."},
    {"bits", "Random projections of a row where vectors = bits, 0 = chosen from the dimensions", OptionKind::integer, 0,
     0, 512, nullptr, nullptr},
};

[[noreturn]] void refuse_graph_options(const char* message, const char* hint)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message), errhint("%s", hint)));
}

void graph_check_options(const ParameterList& options, uint32)
{
    const int64 degree = options.get("degree", 0);
    const int64 build_degree = options.get("build_degree", 0);
    const int64 bits = options.get("bits", 0);
    if (degree != 0 && degree < fewest_degree) {
        refuse_graph_options("degree must be 0 or at least 4", "With fewer neighbours, searches lose their way.");
    }
    if (bits % 32 != 0) refuse_graph_options("bits must be a multiple of 32", "Usual are 128, 256 and 512.");
    if (bits != 0 && options.get("vectors", 0) != 2) {
        refuse_graph_options("bits are of no use without vectors = bits", "Set both, or neither.");
    }
    if (build_degree != 0 && build_degree < Max(degree, fewest_degree)) {
        refuse_graph_options("build_degree must be 0 or at least 4, and not less than degree",
                             "The neighbours of a row are chosen from the build_degree nearest ones.");
    }
}

bool graph_add_settings(ParameterList* settings)
{
    if (setting_graph_ef_search > 0) settings->set("ef_search", setting_graph_ef_search);
    GraphChoices choices = setting_graph;
    choices.visited = static_cast<GraphChoices::Visited>(setting_graph_visited);
    choices.add_to(*settings);
    return setting_graph_ef_search > 0;
}

ResultKind graph_result_kind(const ParameterList& options)
{
    switch (options.get("vectors", 0)) {
        case 0:
            return ResultKind::exact;
        case 1:
            return ResultKind::lower_bound;
        default:
            return ResultKind::approximate;
    }
}

// About half of the neighbours looked at were seen before; rows from all over memory cost twice as much as a block.
double graph_compared_rows(const SearchCostInput& input)
{
    double degree = static_cast<double>(input.options.get("degree", 0));
    if (degree <= 0) degree = usual_degree;
    double ef_search = input.any_session ? 0 : setting_graph_ef_search;
    if (ef_search <= 0) ef_search = usual_ef_search;
    return Min(input.rows, ef_search * degree);
}

const char* const exact_row_arrays[] = {"vectors", nullptr};
const char* const ivfadc_row_arrays[] = {"list_of_row", "code_scale", "codes", "half", "vectors", nullptr};
const char* const graph_row_arrays[] = {"neighbours", "bits", "half", "vectors", nullptr};

}  // namespace

const AccessMethod access_methods[] = {
    {Method::exact, "exact", exact_options, lengthof(exact_options), no_checks, no_settings, exact_result_kind,
     exact_compared_rows, true, exact_row_arrays, true, false, parse_options<Method::exact>,
     estimate_cost<Method::exact>},
    {Method::ivfadc, "ivfadc", ivfadc_options, lengthof(ivfadc_options), ivfadc_check_options, ivfadc_add_settings,
     ivfadc_result_kind, ivfadc_compared_rows, false, ivfadc_row_arrays, false, false, parse_options<Method::ivfadc>,
     estimate_cost<Method::ivfadc>},
    {Method::graph, "graph", graph_options, lengthof(graph_options), graph_check_options, graph_add_settings,
     graph_result_kind, graph_compared_rows, false, graph_row_arrays, false, true, parse_options<Method::graph>,
     estimate_cost<Method::graph>},
};
const int access_method_count = lengthof(access_methods);

const AccessMethod& access_method(Method method)
{
    for (const AccessMethod& entry : access_methods) {
        if (entry.method == method) return entry;
    }
    elog(ERROR, "unknown access method %d", static_cast<int>(method));
}

const AccessMethod* find_access_method(amoptions_function parse_options)
{
    for (const AccessMethod& entry : access_methods) {
        if (entry.parse_options == parse_options) return &entry;
    }
    return nullptr;
}

// The planner has copied the routine's fields; the cost function is one that no other access method has.
const AccessMethod* find_access_method(const IndexOptInfo* index)
{
    for (const AccessMethod& entry : access_methods) {
        if (reinterpret_cast<void*>(entry.estimate_cost) == reinterpret_cast<void*>(index->amcostestimate)) {
            return &entry;
        }
    }
    return nullptr;
}

const AccessMethod* find_access_method_by_name(const char* name)
{
    for (const AccessMethod& entry : access_methods) {
        if (strcmp(entry.name, name) == 0) return &entry;
    }
    return nullptr;
}

void refuse_other_relation(const char* name)
{
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a pgwarp index", name)));
}

const AccessMethod& access_method_of(Relation index)
{
    const char* name = RelationGetRelationName(index);
    const AccessMethod* found = index->rd_indam != nullptr ? find_access_method(index->rd_indam->amoptions) : nullptr;
    if (found == nullptr) refuse_other_relation(name);
    if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX) {
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is a partitioned index", name),
                        errhint("Name the index of a partition.")));
    }
    return *found;
}

}  // namespace pgwarp
