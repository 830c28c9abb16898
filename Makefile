# pgwarp.so by PGXS; pgwarp-engine by CMake.
EXTENSION = pgwarp src/bridge/pgwarp_pgvector
MODULE_big = pgwarp
DATA = $(wildcard src/sql/pgwarp--*.sql src/bridge/pgwarp_pgvector--*.sql)

# Sources that are compiled one by one: they have functions for several processors, depend on flags, or share the names of
# their callbacks with another file of the folder.
CXX_SOURCES = src/methods/description.cpp $(wildcard src/methods/*/description.cpp src/methods/*/estimate.cpp) \
	src/numeric/bits.cpp src/numeric/canonical.cpp src/numeric/edit_distance.cpp src/numeric/gram_distance.cpp \
	src/numeric/jaro_winkler.cpp src/numeric/sparse_distance.cpp \
	src/postgres/storage/fault_point.cpp src/postgres/client/message_fault.cpp \
	src/postgres/executor/knn_filter.cpp src/postgres/executor/knn_partitions.cpp
# All others of a folder are compiled as one unit, .deps/units/FOLDER.cpp, which includes them: most of the time of each
# would go into the same headers.
FOLDERS = $(patsubst src/%/,%,$(sort $(dir $(wildcard src/postgres/*.cpp src/postgres/*/*.cpp src/protocol/*.cpp))))
UNITS = $(foreach folder,$(FOLDERS),.deps/units/$(subst /,_,$(folder)).cpp)
ENGINE_BUILD ?= build/engine
ENGINE_CMAKE_FLAGS ?=

# A build for tests has fault points, on which two files depend, and an access method for tests.
FAULTS := $(findstring -DPGWARP_FAULTS,$(filter -DPGWARP_FAULTS=ON,$(ENGINE_CMAKE_FLAGS)))
$(shell mkdir -p .deps && echo '$(FAULTS)' | cmp -s - .deps/faults || echo '$(FAULTS)' >.deps/faults)
ifneq ($(FAULTS),)
CXX_SOURCES += test/overlap_index/overlap_index.cpp test/unit/overlap_method/description.cpp
endif
OBJS = $(UNITS:.cpp=.o) $(CXX_SOURCES:.cpp=.o)
# A unit changes only with the names of its files.
hash := \#
unit_text = $(patsubst src/%,$(hash)include "%"\n,$(filter-out $(CXX_SOURCES),$(sort $(wildcard src/$(1)/*.cpp))))
write_unit = printf '%b' '$(call unit_text,$(1))' >.deps/units/new && { cmp -s .deps/units/new $(2) || mv .deps/units/new $(2); }
$(shell mkdir -p .deps/units; $(foreach folder,$(FOLDERS),$(call write_unit,$(folder),.deps/units/$(subst /,_,$(folder)).cpp);))

REGRESS ?= $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=pgwarp
# Texts are expected in the order of their bytes, whatever the server's own locale.
ENCODING = UTF8
NO_LOCALE = 1
TAP_TESTS = 1
PROVE_TESTS ?= test/tap/*.pl

PG_CPPFLAGS = -I$(srcdir)/src $(if $(FAULTS),$(FAULTS) -I$(srcdir)/test/unit)
PG_CXXFLAGS = -std=c++20 -O3 -Wall -Wextra -Werror -Wno-register -Wno-volatile -Wno-unused-parameter -Wno-missing-field-initializers \
	-Wno-subobject-linkage -fno-exceptions -ffp-contract=off -fvisibility=hidden -fvisibility-inlines-hidden $(EXTRA_CXXFLAGS)
# PostgreSQL loads libraries into one namespace, and another one may export what this one does (pgvector has vector_out):
# a library that was loaded first must not be called in place of this one's own functions.
SHLIB_LINK += -Wl,-Bsymbolic -lhwy -lstdc++ -lm

# PGXS adds the server's flags to variables of the environment, and make would hand the sums to the engine's build.
engine_flags := $(foreach name,CFLAGS CXXFLAGS LDFLAGS,$(if $(filter environment,$(origin $(name))),$(name)='$($(name))'))
override with_llvm := no
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Another server's headers: everything is compiled anew.
$(shell echo '$(VERSION) $(includedir_server)' | cmp -s - .deps/server || echo '$(VERSION) $(includedir_server)' >.deps/server)
$(OBJS): .deps/server
# Other flags too.
$(shell echo '$(EXTRA_CXXFLAGS) $(UNIT_CXXFLAGS)' | cmp -s - .deps/flags || echo '$(EXTRA_CXXFLAGS) $(UNIT_CXXFLAGS)' >.deps/flags)
$(OBJS): .deps/flags

# Header dependencies: PGXS knows none for C++.
%.o: %.cpp
	@mkdir -p $(dir .deps/$@)
	$(COMPILE.cc) -MMD -MP -MF .deps/$@.d -o $@ $<
-include $(OBJS:%=.deps/%.d)
src/postgres/storage/fault_point.o src/postgres/client/message_fault.o: .deps/faults
# Flags are in this file.
$(OBJS): Makefile
# Flags of the units alone, which have no arithmetic of distances.
$(UNITS:.cpp=.o): override CXXFLAGS += $(UNIT_CXXFLAGS)

# Ninja knows nothing of make's jobs: it is told their number.
all: engine
.PHONY: engine
engine:
	$(engine_flags) cmake -S $(srcdir) -B $(ENGINE_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPGWARP_TESTS=OFF \
		$(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache) \
		$(ENGINE_CMAKE_FLAGS)
	cmake --build $(ENGINE_BUILD) $(filter -j%,$(MAKEFLAGS)) --target product

# The launcher looks for the engine beside pgwarp.so.
install: install-engine
.PHONY: install-engine
install-engine: engine installdirs
	$(INSTALL_PROGRAM) $(ENGINE_BUILD)/pgwarp-engine '$(DESTDIR)$(pkglibdir)/pgwarp-engine'
	if [ -f $(ENGINE_BUILD)/cuda/pgwarp-cuda.so ]; then \
		$(INSTALL_SHLIB) $(ENGINE_BUILD)/cuda/pgwarp-cuda.so '$(DESTDIR)$(pkglibdir)/pgwarp-cuda.so'; fi
	$(MKDIR_P) '$(DESTDIR)$(mandir)/man1'
	$(INSTALL_DATA) $(srcdir)/docs/man/pgwarp-engine.1 '$(DESTDIR)$(mandir)/man1/pgwarp-engine.1'
uninstall: uninstall-engine
.PHONY: uninstall-engine
uninstall-engine:
	rm -f '$(DESTDIR)$(pkglibdir)/pgwarp-engine' '$(DESTDIR)$(pkglibdir)/pgwarp-cuda.so' '$(DESTDIR)$(mandir)/man1/pgwarp-engine.1'

# The extension `vector`, for servers without pgvector's package, whose files have the same names: `make install` leaves it out.
PGWARP_VERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/pgwarp.control)
VECTOR_VERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/src/shim/vector.control)
VECTOR_SCRIPT = .deps/vector--$(VECTOR_VERSION).sql
VECTOR_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/shim/*.cpp))
-include $(VECTOR_OBJS:%=.deps/%.d)
$(VECTOR_OBJS): Makefile .deps/server .deps/flags
vector.so: $(VECTOR_OBJS)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $(LDFLAGS_SL) -shared -Wl,-Bsymbolic -o $@ $(VECTOR_OBJS)
$(VECTOR_SCRIPT): src/sql/pgwarp--$(PGWARP_VERSION).sql src/shim/access_methods.sql src/shim/script.sed Makefile
	sed -f src/shim/script.sed $< >$@.new
	[ "$$(grep -c hnswhandler $@.new)" -ge 3 ] && mv $@.new $@
.PHONY: vector install-vector uninstall-vector
vector: vector.so $(VECTOR_SCRIPT)
install-vector: vector installdirs
	$(INSTALL_SHLIB) vector.so '$(DESTDIR)$(pkglibdir)/vector.so'
	$(INSTALL_DATA) src/shim/vector.control $(VECTOR_SCRIPT) '$(DESTDIR)$(datadir)/extension/'
uninstall-vector:
	rm -f '$(DESTDIR)$(pkglibdir)/vector.so' '$(DESTDIR)$(datadir)/extension/vector.control' \
		'$(DESTDIR)$(datadir)/extension/'vector--*.sql
clean: clean-vector
.PHONY: clean-vector
clean-vector:
	rm -f vector.so $(VECTOR_OBJS)
clean: clean-engine
.PHONY: clean-engine
clean-engine:
	rm -rf $(ENGINE_BUILD) .deps
