// The build of an index of texts: the form of its grams.
#include "methods/list_builder.h"
#include "methods/matchcount/matchcount.h"
#include "methods/options.h"

namespace pgwarp::matchcount
{

GramForm gram_form(const ParameterList& options)
{
    require_options(matchcount_description, options, {});
    GramForm form;
    form.n = static_cast<std::uint32_t>(options.get(option_gram, form.n));
    return form;
}

std::unique_ptr<Builder> make_text_builder(const IndexShape&, const ParameterList& options)
{
    ParameterList effective;
    effective.set(option_gram, gram_form(options).n);
    return make_list_builder(effective);
}

}  // namespace pgwarp::matchcount
