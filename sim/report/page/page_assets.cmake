# SPDX-License-Identifier: BSD-3-Clause
# Embeds the parts of every page in a source file of rehearse_sim. The file that makes that target must include this
# one, because a custom command serves only targets of its own folder. The scripts follow each other in this order;
# start() in the last one is called at the end.
set(folder "${CMAKE_CURRENT_LIST_DIR}")
set(assets "${folder}/assets")
set(skeleton "${assets}/page.html")
set(styles style.css tables.css timeline.css)
set(scripts dom.js texts.js timeline_data.js model.js filters.js sections.js waits.js timeline_rows.js timeline_draw.js
            timeline_view.js timeline_input.js timeline_part.js comparison.js dumps.js main.js)
list(TRANSFORM styles PREPEND "${assets}/")
list(TRANSFORM scripts PREPEND "${assets}/")
set(embedded "${CMAKE_CURRENT_BINARY_DIR}/page_assets.cpp")
add_custom_command(OUTPUT "${embedded}"
  COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${embedded}" "-DSKELETON=${skeleton}" "-DSTYLES=${styles}" "-DSCRIPTS=${scripts}"
          -P "${folder}/embed_assets.cmake"
  DEPENDS "${skeleton}" ${styles} ${scripts} "${folder}/embed_assets.cmake"
  COMMENT "Embedding the parts of report pages" VERBATIM)
target_sources(rehearse_sim PRIVATE "${embedded}")
set_source_files_properties("${embedded}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
